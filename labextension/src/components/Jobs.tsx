import * as React from 'react';

import { useAttempt, useDesk, useHeard } from '../desk';
import { devices } from '../text';
import { JobView } from '../wire';
import { Action } from './Action';
import { Section } from './Section';
import { Name, Prose, Refused, Sentence } from './Text';

const ENDED = 'ended';
const ENDED_SHOWN = 5;

/** One's batch jobs: those that live, then the last that ended. */
export function Jobs(): React.JSX.Element {
  const { words } = useDesk();
  const jobs = useHeard('jobs')?.view.jobs ?? [];
  const newest = [...jobs].sort((one, other) => other.number - one.number);
  const living = newest.filter(job => job.state !== ENDED);
  const ended = newest.filter(job => job.state === ENDED).slice(0, ENDED_SHOWN);
  return (
    <Section title={words.jobs} aside={living.length === 0 ? undefined : `${living.length}`}>
      {newest.length === 0 && (
        <p className="gpb-Empty">
          <Prose text={words.noJobs} />
        </p>
      )}
      <ul className="gpb-Rows">
        {[...living, ...ended].map(job => (
          <Job key={job.id} job={job} />
        ))}
      </ul>
    </Section>
  );
}

function Job(props: { readonly job: JobView }): React.JSX.Element {
  const { api, store, words } = useDesk();
  const { attempt, isBusy, refusal } = useAttempt();
  const { job } = props;
  const cancel = async (): Promise<void> => {
    await api.cancel('jobs', job.id);
    await store.refresh('jobs');
  };
  return (
    <li className={job.state === ENDED ? 'gpb-Row gpb-mod-over' : 'gpb-Row'} data-job={job.id}>
      <span className="gpb-Row-main">
        <span className="gpb-Job-name">
          <span className="gpb-Number">{job.number}</span> <Name text={job.name} />
          {job.lease !== null && (
            <span className="gpb-Job-device">{devices(job.lease.models, job.lease.profiles)}</span>
          )}
        </span>
        <span className="gpb-Row-detail gpb-mod-wraps">
          <Sentence of={job} />
        </span>
        <Refused text={refusal} />
      </span>
      {job.state !== ENDED && job.state !== 'stopping' && (
        <Action label={words.cancel} isQuiet isDisabled={isBusy} onClick={() => attempt(cancel)} />
      )}
    </li>
  );
}
