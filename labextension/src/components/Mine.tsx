import * as React from 'react';

import { useCurrent, useDesk, useHeard } from '../desk';
import { baseName } from '../text';
import { SessionView } from '../wire';
import { Action } from './Action';
import { Elsewhere } from './Elsewhere';
import { LeaseCard } from './LeaseCard';
import { RequestCard } from './RequestCard';
import { Section } from './Section';

/** Cards drawn at first, and with each wish for more. */
const SHOWN_AT_ONCE = 20;

/** Everything that one's notebooks and commands hold or wait for; batch jobs have a section of their own. */
export function Mine(): React.JSX.Element {
  const { words } = useDesk();
  const heard = useHeard('sessions');
  const current = useCurrent();
  const [most, setMost] = React.useState(SHOWN_AT_ONCE);
  if (heard === undefined) {
    return (
      <Section title={words.mine}>
        <p className="gpb-Empty">{words.loading}</p>
      </Section>
    );
  }
  const cards = heard.view.sessions
    .filter(session => session.kind !== 'runner')
    .flatMap(session => {
      const holder = session.name === '' ? words.command : baseName(session.name);
      return cardsOf(session, holder, heard.atMs, current?.kernelId ?? null);
    })
    .sort((one, other) => one.rank - other.rank);
  return (
    <Section title={words.mine} aside={cards.length === 0 ? undefined : `${cards.length}`}>
      {cards.length === 0 && <p className="gpb-Empty">{words.nothingHeld}</p>}
      <ul className="gpb-Cards">{cards.slice(0, most).map(({ card }) => card)}</ul>
      {cards.length > most && (
        <Action
          label={words.showMore(cards.length - most)}
          isQuiet
          onClick={() => setMost(most + SHOWN_AT_ONCE)}
        />
      )}
      {cards.length > 0 && <Elsewhere />}
    </Section>
  );
}

/** What wants an answer comes first, what is waited for next. */
enum Rank {
  Noticed,
  Waiting,
  Held
}

interface RankedCard {
  readonly rank: Rank;
  readonly card: React.JSX.Element;
}

function cardsOf(
  session: SessionView,
  holder: string,
  atMs: number,
  kernelId: string | null
): RankedCard[] {
  const isCurrent = kernelId !== null && session.kernel_id === kernelId;
  const shared = { holder, holderTitle: session.name, isCurrent };
  return [
    ...session.requests.map(request => ({
      rank: Rank.Waiting,
      card: <RequestCard key={request.id} request={request} {...shared} />
    })),
    ...session.leases.map(lease => ({
      rank: lease.notice === null ? Rank.Held : Rank.Noticed,
      card: <LeaseCard key={lease.id} lease={lease} atMs={atMs} {...shared} />
    }))
  ];
}
