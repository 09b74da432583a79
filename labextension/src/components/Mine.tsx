import * as React from 'react';

import { useCurrent, useDesk, useHeard } from '../desk';
import { baseName } from '../text';
import { JobView, LeaseView, SessionView } from '../wire';
import { Words } from '../words';
import { LeaseCard } from './LeaseCard';
import { RequestCard } from './RequestCard';
import { Section } from './Section';

/** Everything that one holds or waits for. */
export function Mine(): React.JSX.Element {
  const { words } = useDesk();
  const heard = useHeard('sessions');
  const jobs = useHeard('jobs')?.view.jobs ?? [];
  const current = useCurrent();
  if (heard === undefined) {
    return (
      <Section title={words.mine}>
        <p className="gpb-Empty">{words.loading}</p>
      </Section>
    );
  }
  const cards = heard.view.sessions
    .flatMap(session => cardsOf(session, heard.atMs, jobs, words, current?.kernelId ?? null))
    .sort((one, other) => one.rank - other.rank);
  return (
    <Section title={words.mine} aside={cards.length === 0 ? undefined : `${cards.length}`}>
      {cards.length === 0 && <p className="gpb-Empty">{words.nothingHeld}</p>}
      <ul className="gpb-Cards">{cards.map(({ card }) => card)}</ul>
    </Section>
  );
}

interface RankedCard {
  readonly rank: Rank;
  readonly card: React.JSX.Element;
}

/** What wants an answer comes first, what is waited for next, what others look after last. */
enum Rank {
  Noticed,
  Waiting,
  Held,
  OfJob
}

function cardsOf(
  session: SessionView,
  atMs: number,
  jobs: readonly JobView[],
  words: Words,
  kernelId: string | null
): RankedCard[] {
  const shared = {
    holderTitle: session.name,
    isCurrent: kernelId !== null && session.kernel_id === kernelId
  };
  const requests = session.kind === 'runner' ? [] : session.requests;
  return [
    ...requests.map(request => ({
      rank: Rank.Waiting,
      card: (
        <RequestCard
          key={request.id}
          request={request}
          holder={nameOf(session, words)}
          {...shared}
        />
      )
    })),
    ...session.leases.map(lease => ({
      rank: lease.notice !== null ? Rank.Noticed : lease.job_id === null ? Rank.Held : Rank.OfJob,
      card: (
        <LeaseCard
          key={lease.id}
          lease={lease}
          holder={holderOf(session, lease, jobs, words)}
          atMs={atMs}
          {...shared}
        />
      )
    }))
  ];
}

function nameOf(session: SessionView, words: Words): string {
  return session.name === '' ? words.command : baseName(session.name);
}

function holderOf(
  session: SessionView,
  lease: LeaseView,
  jobs: readonly JobView[],
  words: Words
): string {
  if (lease.job_id === null) {
    return nameOf(session, words);
  }
  const job = jobs.find(each => each.id === lease.job_id);
  return job === undefined ? words.runner : `${words.job(job.number)} · ${job.name}`;
}
