import * as React from 'react';

import { useAttempt, useDesk, useNow } from '../desk';
import { canKeep, canPark, canRelease, canUnpark, stateSince } from '../standing';
import { countdown, devices, duration } from '../text';
import { LeaseView } from '../wire';
import { sentenceOf } from '../words';
import { Action } from './Action';
import { Curves } from './Curves';
import { Name, Refused, Sentence } from './Text';
import { Why } from './Why';

interface LeaseCardProps {
  readonly lease: LeaseView;
  /** Who holds it, and the whole of that name. */
  readonly holder: string;
  readonly holderTitle: string;
  /** When the broker said so. */
  readonly atMs: number;
  readonly isCurrent: boolean;
}

export function LeaseCard(props: LeaseCardProps): React.JSX.Element {
  const { words } = useDesk();
  const { lease } = props;
  const [isAsked, setAsked] = React.useState(false);
  const looks = [
    'gpb-Card',
    lease.notice === null ? '' : 'gpb-mod-noticed',
    props.isCurrent ? 'gpb-mod-current' : ''
  ];
  return (
    <li className={looks.filter(Boolean).join(' ')} data-lease={lease.id}>
      <header className="gpb-Card-header">
        <h3>
          <Name text={props.holder} title={props.holderTitle} />
        </h3>
        <span className="gpb-Card-device">{devices(lease.models, lease.profiles)}</span>
      </header>
      <div className="gpb-Card-state">
        <State lease={lease} atMs={props.atMs} />
        <Action label={words.why} isQuiet isExpanded={isAsked} onClick={() => setAsked(!isAsked)} />
      </div>
      {lease.notice !== null && (
        <p role="status">
          <Sentence of={lease.notice.reason} />
        </p>
      )}
      {lease.state === 'active' && lease.notice === null && <Curves lease={lease} />}
      <Facts lease={lease} atMs={props.atMs} />
      <Actions lease={lease} holder={props.holder} />
      {isAsked && (
        <Why
          things="leases"
          id={lease.id}
          version={`${lease.state} ${lease.verdict} ${lease.keeps_left ?? ''}`}
        />
      )}
    </li>
  );
}

interface Said {
  readonly lease: LeaseView;
  /** When the broker said so. */
  readonly atMs: number;
}

/** What it is doing and for how long, or when it goes back. */
function State(props: Said): React.JSX.Element {
  const { words } = useDesk();
  const { lease } = props;
  const agoMs = useNow(true) - props.atMs;
  return lease.notice === null ? (
    <span>
      <span className={`gpb-Dot gpb-mod-${dotOf(lease)}`} aria-hidden="true" />
      {stateSince(lease, words, agoMs)}
    </span>
  ) : (
    <span className="gpb-Card-countdown" role="timer">
      {words.returnsIn(countdown(lease.notice.due_in_ms - agoMs))}
    </span>
  );
}

/** How it would come free, and for how long it is safe. */
function Facts(props: Said): React.JSX.Element {
  const { words } = useDesk();
  const { lease } = props;
  const agoMs = useNow(lease.kept_for_ms !== null || lease.ends_in_ms !== null) - props.atMs;
  const left = [
    lease.kept_for_ms === null || lease.kept_for_ms <= agoMs
      ? null
      : words.keptFor(duration(lease.kept_for_ms - agoMs)),
    lease.ends_in_ms === null ? null : words.endsIn(duration(Math.max(0, lease.ends_in_ms - agoMs)))
  ].filter(Boolean);
  const refusals = Object.values(lease.refusals).map(reason => sentenceOf(reason, words));
  return (
    <p className="gpb-Card-facts" title={refusals.join('\n')}>
      {lease.state === 'active' ? (
        (words.giveBack[lease.give_back] ?? words.unknownState)
      ) : (
        <Sentence of={lease} />
      )}
      {left.length > 0 && <span className="gpb-Card-left">{left.join(' · ')}</span>}
    </p>
  );
}

function Actions(props: { readonly lease: LeaseView; readonly holder: string }): React.JSX.Element {
  const { api, words } = useDesk();
  const { attempt, isBusy, refusal } = useAttempt();
  const { lease } = props;
  const left = lease.keeps_left;
  return (
    <>
      <div className="gpb-Actions" role="group" aria-label={words.actionsOf(props.holder)}>
        {lease.state === 'active' && left !== null && (
          <Action
            label={words.keep}
            hint={left === 0 ? words.noKeepsLeft : words.keepHint(left)}
            isPrimary={lease.notice !== null}
            isDisabled={isBusy || !canKeep(lease)}
            onClick={() => attempt(() => api.keep(lease))}
          />
        )}
        {canUnpark(lease) && (
          <Action
            label={words.unpark}
            isPrimary
            isDisabled={isBusy}
            onClick={() => attempt(() => api.unpark(lease))}
          />
        )}
        {canPark(lease) && (
          <Action
            label={words.park}
            hint={words.parkHint}
            isDisabled={isBusy}
            onClick={() => attempt(() => api.park(lease))}
          />
        )}
        {canRelease(lease) && (
          <Action
            label={words.release}
            hint={words.releaseHint}
            isDisabled={isBusy}
            onClick={() => attempt(() => api.release(lease))}
          />
        )}
      </div>
      <Refused text={refusal} />
    </>
  );
}

function dotOf(lease: LeaseView): string {
  if (lease.state === 'active') {
    return lease.verdict === 'active' || lease.verdict === 'serving' ? 'active' : 'quiet';
  }
  return lease.state === 'parked' ? 'parked' : 'moving';
}
