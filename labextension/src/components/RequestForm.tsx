import * as React from 'react';

import { DURATIONS } from '../choices';
import { Current } from '../current';
import { useAttempt, useCurrent, useDesk, useHeard, useStanding } from '../desk';
import { Standing } from '../standing';
import { RequestBody, SessionView } from '../wire';
import { Outlook } from './Outlook';
import { Section } from './Section';
import { FIRST_CHOICE, SlotFields, specOfChosen, TimeField, useChoice } from './SlotFields';
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
  const [chosen, setChosen] = React.useState(FIRST_CHOICE);
  const [durationMs, setDurationMs] = React.useState<number | null>(null);
  const choice = useChoice(chosen);
  if (choice === null) {
    return <p className="gpb-Empty">{gpus === undefined ? words.loading : words.noGpus}</p>;
  }
  const body: RequestBody = {
    session_id: props.session.id,
    spec: specOfChosen(choice, chosen),
    duration_ms: durationMs
  };
  const submit = (event: React.FormEvent): void => {
    event.preventDefault();
    attempt(() => api.request(body));
  };
  return (
    <form onSubmit={submit}>
      <SlotFields choice={choice} chosen={chosen} onChange={setChosen} />
      <TimeField
        label={words.until}
        unlimited={words.untilReleased}
        choices={DURATIONS}
        value={durationMs}
        onChange={setDurationMs}
      />
      <Outlook body={body} choice={choice} />
      <div className="gpb-Actions">
        <button type="submit" className="gpb-Action gpb-mod-primary" disabled={isBusy}>
          {words.request}
        </button>
      </div>
      <Refused text={refusal} />
    </form>
  );
}
