import * as React from 'react';

import { useAttempt, useDesk, useHeard, useJobForm } from '../desk';
import { isSure } from '../questions';
import { clean, devices } from '../text';
import { JobView } from '../wire';
import { Words } from '../words';
import { Action } from './Action';
import { JobForm } from './JobForm';
import { Section } from './Section';
import { Name, Refused, Sentence } from './Text';
import { Why } from './Why';

const ENDED = 'ended';
const ENDED_SHOWN = 5;

/** One's batch jobs: those that live, then the last that ended; and a form for new ones. */
export function Jobs(): React.JSX.Element {
  const { current, jobForm, words } = useDesk();
  const jobs = useHeard('jobs')?.view.jobs ?? [];
  const isFormOpen = useJobForm() !== 'closed';
  const newest = [...jobs].sort((one, other) => other.number - one.number);
  const living = newest.filter(job => job.state !== ENDED);
  const ended = newest.filter(job => job.state === ENDED).slice(0, ENDED_SHOWN);
  const openForm = (): void => jobForm.set(current.getSnapshot() === null ? 'command' : 'notebook');
  return (
    <Section title={words.jobs} aside={living.length === 0 ? undefined : `${living.length}`}>
      {isFormOpen ? <JobForm /> : <Action label={words.newJob} onClick={openForm} />}
      {newest.length === 0 && !isFormOpen && <p className="gpb-Empty">{words.noJobs}</p>}
      <ul className="gpb-Rows">
        {[...living, ...ended].map(job => (
          <Job key={job.id} job={job} />
        ))}
      </ul>
    </Section>
  );
}

function Job(props: { readonly job: JobView }): React.JSX.Element {
  const { openOutput, words } = useDesk();
  const [isAsked, setAsked] = React.useState(false);
  const { job } = props;
  return (
    <li className={job.state === ENDED ? 'gpb-Job gpb-mod-over' : 'gpb-Job'} data-job={job.id}>
      <span className="gpb-Job-name">
        <span className="gpb-Number">{job.number}</span> <Name text={job.name} />
        {job.lease !== null && (
          <span className="gpb-Job-device">{devices(job.lease.models, job.lease.profiles)}</span>
        )}
      </span>
      <span className="gpb-Row-detail gpb-mod-wraps">
        <Sentence of={job} />
      </span>
      <div className="gpb-Job-actions" role="group" aria-label={words.actionsOfJob(job.number)}>
        {job.ran_for_ms !== null && (
          <Action label={words.output} isQuiet onClick={() => openOutput(job)} />
        )}
        <Action label={words.why} isQuiet isExpanded={isAsked} onClick={() => setAsked(!isAsked)} />
        <Cancel job={job} />
      </div>
      {isAsked && <Why things="jobs" id={job.id} version={`${job.state} ${job.place ?? ''}`} />}
    </li>
  );
}

/** Ends a job, after a question. */
export function Cancel(props: { readonly job: JobView }): React.JSX.Element | null {
  const { api, store, words } = useDesk();
  const { attempt, isBusy, refusal } = useAttempt();
  const { job } = props;
  if (job.state === ENDED || job.state === 'stopping') {
    return null;
  }
  const cancel = async (): Promise<void> => {
    if (await isSure(questionOf(job, words))) {
      await api.cancel('jobs', job.id);
      await store.refresh('jobs');
    }
  };
  return (
    <>
      <Action label={words.cancel} isQuiet isDisabled={isBusy} onClick={() => attempt(cancel)} />
      <Refused text={refusal} />
    </>
  );
}

function questionOf(job: JobView, words: Words): Parameters<typeof isSure>[0] {
  const name = `${job.number} ${clean(job.name)}`;
  return job.state === 'queued'
    ? {
        title: words.takeOutQuestion(name),
        body: words.takeOutMeans,
        yes: words.takeOut,
        no: words.letItWait
      }
    : {
        title: words.stopQuestion(name),
        body: words.stopMeans,
        yes: words.stop,
        no: words.letItRun
      };
}
