import * as React from 'react';

import { useDesk, useHeard } from '../desk';
import { JobLog } from '../log';
import { printed } from '../text';
import { detailOf } from '../words';
import { Cancel } from './Jobs';
import { Name, Prose, Refused, Sentence } from './Text';

/** From here on it counts as the end, where one wants to stay. */
const END_PX = 24;

interface OutputProps {
  readonly jobId: string;
  readonly log: JobLog;
}

/** What a job does, and what it writes, live. */
export function Output(props: OutputProps): React.JSX.Element {
  const { words } = useDesk();
  const job = useHeard('jobs')?.view.jobs.find(each => each.id === props.jobId);
  const log = React.useSyncExternalStore(props.log.subscribe, props.log.getSnapshot);
  const isEmpty = log.isLoaded && log.stdout === '' && log.stderr === '';
  return (
    <div className="gpb-Output-body">
      {job !== undefined && (
        <header className="gpb-Output-header">
          <span className="gpb-Number">{job.number}</span>
          <Name text={job.name} />
          <span className="gpb-Output-sentence" role="status">
            <Sentence of={job} />
          </span>
          <Cancel job={job} />
        </header>
      )}
      <Refused text={log.problem === null ? null : detailOf(log.problem, words)} />
      {log.isCut && <p className="gpb-Empty">{words.logIsCut}</p>}
      {!log.isLoaded && log.problem === null && <p className="gpb-Empty">{words.loadingLog}</p>}
      {isEmpty && (
        <p className="gpb-Empty">
          <Prose text={words.noOutput} />
        </p>
      )}
      <Stream label={words.output} text={log.stdout} />
      <Stream label={words.errorOutput} text={log.stderr} />
    </div>
  );
}

/** Stays at the end as it grows, unless one has scrolled away from it. */
function Stream(props: {
  readonly label: string;
  readonly text: string;
}): React.JSX.Element | null {
  const node = React.useRef<HTMLPreElement>(null);
  const isAtEnd = React.useRef(true);
  React.useLayoutEffect(() => {
    if (node.current !== null && isAtEnd.current) {
      node.current.scrollTop = node.current.scrollHeight;
    }
  }, [props.text]);
  if (props.text === '') {
    return null;
  }
  const note = (event: React.UIEvent<HTMLPreElement>): void => {
    const { scrollHeight, scrollTop, clientHeight } = event.currentTarget;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < END_PX;
  };
  return (
    <section className="gpb-Stream" aria-label={props.label}>
      <h2>{props.label}</h2>
      <pre ref={node} tabIndex={0} onScroll={note}>
        {printed(props.text)}
      </pre>
    </section>
  );
}
