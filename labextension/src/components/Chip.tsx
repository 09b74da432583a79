import * as React from 'react';

import { Current } from '../current';
import { useAttempt, useDesk, useNow, useStanding } from '../desk';
import { brief, canKeep, isNoticed, Standing } from '../standing';
import { detailOf, sentenceOf, Words } from '../words';
import { Action } from './Action';

interface ChipProps {
  readonly current: Current | null;
  readonly className: string;
  /** Show what can be done, below this element. */
  readonly onOpen: (anchor: HTMLElement) => void;
}

/** How things stand for a notebook, in a few words; while its GPU is about to go back, with the way to keep it. */
export function Chip(props: ChipProps): React.JSX.Element | null {
  const { api, words } = useDesk();
  const { attempt, isBusy } = useAttempt();
  const standing = useStanding(props.current?.kernelId ?? null);
  const nowMs = useNow(standing !== null && isNoticed(standing));
  if (standing === null) {
    return null;
  }
  const text = brief(standing, words, nowMs);
  return (
    <span className={`${props.className} gpb-mod-${lookOf(standing)}`}>
      <button
        type="button"
        className="gpb-Chip-button"
        title={explain(standing, words)}
        aria-haspopup="menu"
        aria-label={`${words.gpu}: ${text}`}
        onClick={event => props.onOpen(event.currentTarget)}
      >
        <span className="gpb-Chip-mark" aria-hidden="true" />
        {text}
      </button>
      {standing.kind === 'holds' && isNoticed(standing) && canKeep(standing.lease) && (
        <Action
          label={words.keep}
          isPrimary
          isDisabled={isBusy}
          onClick={() => attempt(() => api.keep(standing.lease))}
        />
      )}
    </span>
  );
}

function lookOf(standing: Standing): string {
  if (standing.kind !== 'holds') {
    return standing.kind;
  }
  const { lease } = standing;
  if (lease.notice !== null) {
    return 'noticed';
  }
  if (lease.state !== 'active') {
    return lease.state;
  }
  return lease.verdict === 'active' || lease.verdict === 'serving' ? 'active' : 'quiet';
}

function explain(standing: Standing, words: Words): string {
  switch (standing.kind) {
    case 'trouble':
      return detailOf(standing.problem, words);
    case 'waits':
      return sentenceOf(standing.request, words);
    case 'holds':
      return sentenceOf(standing.lease, words);
    default:
      return words.openPanel;
  }
}
