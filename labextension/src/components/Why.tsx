import * as React from 'react';

import { Things } from '../api';
import { refusalText, useDesk } from '../desk';
import { Step, WhyView } from '../wire';
import { Refused, Sentence } from './Text';

const CLOCK = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const;

interface WhyProps {
  readonly things: Things;
  readonly id: string;
  /** Asked anew when this changes. */
  readonly version: string;
}

/** Why something is as it is: the sentence, then what happened, newest first. */
export function Why(props: WhyProps): React.JSX.Element {
  const { api, words } = useDesk();
  const [view, setView] = React.useState<WhyView | null>(null);
  const [refusal, setRefusal] = React.useState<string | null>(null);
  React.useEffect(() => {
    let isWanted = true;
    api
      .why(props.things, props.id)
      .then(found => isWanted && setView(found))
      .catch((error: unknown) => isWanted && setRefusal(refusalText(error, words)));
    return () => void (isWanted = false);
  }, [props.things, props.id, props.version]);
  return (
    <div className="gpb-Why">
      <Refused text={refusal} />
      {view === null && refusal === null && <p>{words.loading}</p>}
      {view !== null && (
        <>
          <p>
            <Sentence of={view} />
          </p>
          <ol tabIndex={0} aria-label={words.why}>
            {newestFirst(view.story).map((step, at) => (
              <li key={at}>
                <time dateTime={step.at}>{clockTime(step.at, words.language)}</time>
                <span>
                  <Sentence of={step.reason} />
                </span>
              </li>
            ))}
          </ol>
        </>
      )}
    </div>
  );
}

/** A decision that concerns two things at once is told once. */
function newestFirst(story: readonly Step[]): readonly Step[] {
  return story
    .filter((step, at) => step.reason.sentence !== story[at - 1]?.reason.sentence)
    .reverse();
}

function clockTime(at: string, language: string): string {
  return new Date(at).toLocaleTimeString(language, CLOCK);
}
