import * as React from 'react';

import { useDesk, useHeard } from '../desk';
import { baseName, duration, roughly } from '../text';
import { QueueEntry } from '../wire';
import { Section } from './Section';
import { Name } from './Text';

/** The same for all, and names are short here. */
const MAKER = /NVIDIA /g;

/** One's own places in line; of others only how many there are. */
export function Queue(): React.JSX.Element {
  const { words } = useDesk();
  const waiting = useHeard('queue')?.view.waiting ?? [];
  const mine = waiting.filter(entry => entry.mine);
  const others = waiting.length - mine.length;
  return (
    <Section title={words.queue} aside={waiting.length === 0 ? undefined : `${waiting.length}`}>
      {waiting.length === 0 && <p className="gpb-Empty">{words.emptyQueue}</p>}
      <ul className="gpb-Rows">
        {mine.map(entry => (
          <Place key={entry.id} entry={entry} all={waiting.length} />
        ))}
      </ul>
      {others > 0 && <p className="gpb-Empty">{words.othersWait(others)}</p>}
    </Section>
  );
}

function Place(props: { readonly entry: QueueEntry; readonly all: number }): React.JSX.Element {
  const { words } = useDesk();
  const { entry } = props;
  const name = entry.name === null || entry.name === '' ? words.command : entry.name;
  const expected =
    entry.expected_in_ms === null
      ? words.expectedUnknown
      : words.expected(roughly(entry.expected_in_ms));
  return (
    <li className="gpb-Row">
      <span className="gpb-Row-main">
        <Name text={baseName(name)} title={name} />
        <span className="gpb-Row-detail">
          {entry.what.replace(MAKER, '')} · {words.waited(duration(entry.waited_ms))}
        </span>
      </span>
      <span className="gpb-Row-side">
        <span className="gpb-Number">{words.myPlace(entry.place, props.all)}</span>
        <span className="gpb-Row-detail">{expected}</span>
      </span>
    </li>
  );
}
