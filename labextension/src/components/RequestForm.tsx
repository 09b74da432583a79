import * as React from 'react';

import { Current } from '../current';
import { useAttempt, useCurrent, useDesk, useHeard, useStanding } from '../desk';
import { Choice, choicesOf, DURATIONS, MEMORY_CHOICE, specOf } from '../choices';
import { Standing } from '../standing';
import { duration, roughly } from '../text';
import { SessionView } from '../wire';
import { Section } from './Section';
import { Name, Refused } from './Text';

/** Ask for a GPU for the notebook that one is at. */
export function RequestSection(): React.JSX.Element {
  const { words } = useDesk();
  const current = useCurrent();
  const standing = useStanding(current?.kernelId ?? null);
  return (
    <Section title={words.request}>
      {current === null && <p className="gpb-Empty">{words.noNotebook}</p>}
      {current !== null && (
        <ForNotebook current={current} standing={standing ?? { kind: 'unknown' }} />
      )}
    </Section>
  );
}

function ForNotebook(props: {
  readonly current: Current;
  readonly standing: Standing;
}): React.JSX.Element {
  const { words } = useDesk();
  const { current, standing } = props;
  return (
    <div className="gpb-Form">
      {standing.kind === 'none' && (
        <p className="gpb-Form-for">
          <span>{words.forNotebook}</span> <Name text={current.name} title={current.path} />
        </p>
      )}
      {standing.kind === 'unknown' && <p className="gpb-Empty">{words.noKernel}</p>}
      {(standing.kind === 'holds' || standing.kind === 'waits') && (
        <p className="gpb-Empty">{words.holdsAlready}</p>
      )}
      {standing.kind === 'none' && <RequestForm session={standing.session} />}
    </div>
  );
}

function RequestForm(props: { readonly session: SessionView }): React.JSX.Element {
  const { api, words } = useDesk();
  const gpus = useHeard('gpus');
  const { attempt, isBusy, refusal } = useAttempt();
  const [chosen, setChosen] = React.useState('');
  const [count, setCount] = React.useState(1);
  const [memoryGib, setMemoryGib] = React.useState(MEMORY_CHOICE.first);
  const [durationMs, setDurationMs] = React.useState<number | null>(null);
  const choices = choicesOf(gpus?.view.gpus ?? [], words);
  const choice = choices.find(each => each.id === chosen) ?? choices[0];
  if (choice === undefined) {
    return <p className="gpb-Empty">{gpus === undefined ? words.loading : words.noGpus}</p>;
  }
  const submit = (event: React.FormEvent): void => {
    event.preventDefault();
    const spec = specOf(choice, count, memoryGib);
    attempt(() => api.ask({ session_id: props.session.id, spec, duration_ms: durationMs }));
  };
  return (
    <form onSubmit={submit}>
      <label>
        <span>{words.what}</span>
        <select
          className="gpb-Input"
          value={choice.id}
          onChange={event => setChosen(event.target.value)}
        >
          {choices.map(each => (
            <option key={each.id} value={each.id}>
              {each.label}
            </option>
          ))}
        </select>
      </label>
      {choice.kind === 'memory' && (
        <label>
          <span>{words.leastMemory}</span>
          <span className="gpb-Form-measure">
            <input
              className="gpb-Input"
              type="number"
              min={1}
              max={MEMORY_CHOICE.most}
              value={memoryGib}
              onChange={event => setMemoryGib(Number(event.target.value))}
            />
            GiB
          </span>
        </label>
      )}
      {choice.kind === 'gpu' && choice.slots.length > 1 && (
        <label>
          <span>{words.count}</span>
          <input
            className="gpb-Input"
            type="number"
            min={1}
            max={choice.slots.length}
            value={count}
            onChange={event => setCount(Number(event.target.value))}
          />
        </label>
      )}
      <label>
        <span>{words.until}</span>
        <select
          className="gpb-Input"
          value={durationMs ?? ''}
          onChange={event =>
            setDurationMs(event.target.value === '' ? null : Number(event.target.value))
          }
        >
          <option value="">{words.untilReleased}</option>
          {DURATIONS.map(each => (
            <option key={each} value={each}>
              {duration(each)}
            </option>
          ))}
        </select>
      </label>
      <Outlook choice={choice} count={choice.kind === 'gpu' ? count : 1} />
      <div className="gpb-Actions">
        <button type="submit" className="gpb-Action gpb-mod-primary" disabled={isBusy}>
          {words.request}
        </button>
      </div>
      <Refused text={refusal} />
    </form>
  );
}

/** What to expect before asking. */
function Outlook(props: { readonly choice: Choice; readonly count: number }): React.JSX.Element {
  const { words } = useDesk();
  const waiting = useHeard('queue')?.view.waiting ?? [];
  const lastMs = waiting[waiting.length - 1]?.expected_in_ms ?? null;
  const { free, slots } = props.choice;
  const isFree = free >= props.count && waiting.length === 0;
  return (
    <p className="gpb-Form-outlook" role="status">
      {isFree
        ? words.freeNow(free, slots.length)
        : [
            words.noneFree(waiting.length),
            lastMs === null ? '' : words.lastExpected(roughly(lastMs))
          ].join(' ')}
    </p>
  );
}
