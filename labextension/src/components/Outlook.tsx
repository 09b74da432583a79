import * as React from 'react';

import { Choice } from '../choices';
import { useDesk, useHeard } from '../desk';
import { Refusal } from '../api';
import { roughly } from '../text';
import { SETTLE_MS } from '../timing';
import { RequestBody, RequestView } from '../wire';
import { detailOf, Words } from '../words';
import { Prose } from './Text';

interface OutlookProps {
  readonly body: RequestBody;
  readonly choice: Choice;
}

/** What to expect before asking, by the broker's own word. Asked anew when the form, the pool or the line changes. */
export function Outlook(props: OutlookProps): React.JSX.Element {
  const { api, words } = useDesk();
  const pool = stateOf(useHeard('gpus')?.view.gpus.flatMap(gpu => gpu.slots) ?? []);
  const line = useHeard('queue')?.view.waiting.length ?? 0;
  const [text, setText] = React.useState('');
  const asked = JSON.stringify(props.body);
  React.useEffect(() => {
    let isWanted = true;
    const look = async (): Promise<void> => {
      const said = await foreseen(() => api.outlook(props.body), props.choice, words);
      if (isWanted) {
        setText(said);
      }
    };
    const timer = window.setTimeout(() => void look(), SETTLE_MS);
    return () => {
      isWanted = false;
      window.clearTimeout(timer);
    };
  }, [asked, pool, line]);
  return (
    <p className="gpb-Form-outlook" role="status">
      <Prose text={text} />
    </p>
  );
}

function stateOf(slots: readonly { readonly id: string; readonly state: string }[]): string {
  return slots.map(slot => `${slot.id} ${slot.state}`).join('\n');
}

async function foreseen(
  ask: () => Promise<RequestView>,
  choice: Choice,
  words: Words
): Promise<string> {
  try {
    const view = await ask();
    if (view.state === 'granted') {
      return words.freeNow(choice.free, choice.slots.length);
    }
    const when =
      view.expected_in_ms === null
        ? words.turnUnknown
        : words.turnExpected(roughly(view.expected_in_ms));
    return `${words.noneFree(view.place ?? 1)} ${when}`;
  } catch (error) {
    return error instanceof Refusal ? detailOf(error.problem, words) : String(error);
  }
}
