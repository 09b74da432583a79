/**
 * How things stand for one kernel, read from what the broker said: the one thing that chip, status bar, commands and cards
 * have to show. A request in line comes before what is held, since it is what one waits for.
 */

import { Heard, Snapshot } from './store';
import { countdown, devices, duration, roughly } from './text';
import { LeaseView, Problem, RequestView, SessionsView, SessionView } from './wire';
import { Words } from './words';

export type Standing =
  | { readonly kind: 'silent' }
  | { readonly kind: 'trouble'; readonly problem: Problem }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'none'; readonly session: SessionView }
  | {
      readonly kind: 'waits';
      readonly session: SessionView;
      readonly request: RequestView;
      readonly atMs: number;
    }
  | {
      readonly kind: 'holds';
      readonly session: SessionView;
      readonly lease: LeaseView;
      readonly atMs: number;
    };

/** What a process cares for most comes first. */
const BY_INTEREST = ['active', 'granted', 'draining', 'parked'];

export function standingOf(snapshot: Snapshot, kernelId: string): Standing {
  const heard = snapshot.lists.sessions;
  if (snapshot.problem !== null) {
    return { kind: 'trouble', problem: snapshot.problem };
  }
  if (heard === undefined) {
    return { kind: 'silent' };
  }
  const session = sessionOf(heard, kernelId);
  if (session === undefined) {
    return { kind: 'unknown' };
  }
  const request = session.requests[0];
  if (request !== undefined) {
    return { kind: 'waits', session, request, atMs: heard.atMs };
  }
  const [lease] = [...session.leases].sort((one, other) => interest(one) - interest(other));
  return lease === undefined
    ? { kind: 'none', session }
    : { kind: 'holds', session, lease, atMs: heard.atMs };
}

export interface Parked {
  readonly lease: LeaseView;
  /** Its way back, once it is asked for. */
  readonly request: RequestView | null;
}

/** The parked lease of a kernel. */
export function parkedOf(snapshot: Snapshot, kernelId: string): Parked | null {
  const heard = snapshot.lists.sessions;
  const session = heard === undefined ? undefined : sessionOf(heard, kernelId);
  const lease = session?.leases.find(each => each.state === 'parked');
  return lease === undefined ? null : { lease, request: session?.requests[0] ?? null };
}

function sessionOf(heard: Heard<SessionsView>, kernelId: string): SessionView | undefined {
  return heard.view.sessions.find(session => session.kernel_id === kernelId);
}

function interest(lease: LeaseView): number {
  const at = BY_INTEREST.indexOf(lease.state);
  return at < 0 ? BY_INTEREST.length : at;
}

/** Does it have a countdown that must tick? */
export function isNoticed(standing: Standing): boolean {
  return standing.kind === 'holds' && standing.lease.notice !== null;
}

/** In a few words, as on the chip. */
export function brief(standing: Standing, words: Words, nowMs: number): string {
  switch (standing.kind) {
    case 'silent':
      return words.gpu;
    case 'trouble':
      return words.noBroker;
    case 'unknown':
      return words.notLent;
    case 'none':
      return words.noGpu;
    case 'waits': {
      const { place, expected_in_ms: expectedMs } = standing.request;
      return words.inQueue(place, expectedMs === null ? null : roughly(expectedMs));
    }
    case 'holds':
      return briefLease(standing.lease, words, nowMs - standing.atMs);
  }
}

/** `agoMs`: how long ago the broker said so. */
export function briefLease(lease: LeaseView, words: Words, agoMs: number): string {
  if (lease.notice !== null) {
    return words.returnsIn(countdown(lease.notice.due_in_ms - agoMs));
  }
  return `${devices(lease.models, lease.profiles)} · ${stateOf(lease, words)}`;
}

/** The lease's state in one or two words. */
export function stateOf(lease: LeaseView, words: Words): string {
  switch (lease.state) {
    case 'granted':
      return words.arriving;
    case 'draining':
      return words.leaving;
    case 'parked':
      return words.parked;
    default:
      return words.verdicts[lease.verdict] ?? words.unknownState;
  }
}

/** The same with how long it has been so. */
export function stateSince(lease: LeaseView, words: Words, agoMs: number): string {
  const state = stateOf(lease, words);
  return lease.state === 'active' ? `${state} · ${duration(lease.verdict_for_ms + agoMs)}` : state;
}

export function canKeep(lease: LeaseView): boolean {
  return lease.state === 'active' && lease.keeps_left !== null && lease.keeps_left > 0;
}

export function canPark(lease: LeaseView): boolean {
  return lease.state === 'active' && lease.give_backs.includes('parked');
}

export function canUnpark(lease: LeaseView): boolean {
  return lease.state === 'parked';
}

export function canRelease(lease: LeaseView): boolean {
  return ['active', 'granted', 'parked'].includes(lease.state);
}
