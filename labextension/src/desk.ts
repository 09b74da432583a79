/** What every part of the screen is given: what the broker said, what can be asked of it, and in which words. */

import * as React from 'react';

import { BrokerApi, ListName, Lists, Refusal } from './api';
import { Current, CurrentNotebook } from './current';
import { History } from './history';
import { Standing, standingOf } from './standing';
import { Heard, Store } from './store';
import { Switch } from './switch';
import { onTick, tickedAt } from './ticker';
import { JobView, Problem } from './wire';
import { detailOf, Words } from './words';

export interface Desk {
  readonly api: BrokerApi;
  readonly store: Store;
  readonly history: History;
  readonly current: CurrentNotebook;
  readonly words: Words;
  readonly jobForm: Switch<JobForm>;
  /** Show what a job writes. */
  readonly openOutput: (job: JobView) => void;
}

/** Whether the form for a new batch job is open, and for what. */
export type JobForm = 'closed' | 'notebook' | 'command';

const DeskContext = React.createContext<Desk | null>(null);

export const DeskProvider = DeskContext.Provider;

export function useDesk(): Desk {
  const desk = React.useContext(DeskContext);
  if (desk === null) {
    throw new Error('there is no desk above this component');
  }
  return desk;
}

/** What was heard of one list last; draws anew only when that one changes. */
export function useHeard<Name extends ListName>(name: Name): Heard<Lists[Name]> | undefined {
  const { store } = useDesk();
  return React.useSyncExternalStore<Heard<Lists[Name]> | undefined>(
    store.subscribe,
    () => store.snapshot.lists[name]
  );
}

/** The same, a little later and in small steps: for what is large, so that typing and scrolling go on meanwhile. */
export function useHeardLater<Name extends ListName>(name: Name): Heard<Lists[Name]> | undefined {
  const heard = useHeard(name);
  const [later, setLater] = React.useState<Heard<Lists[Name]> | undefined>(undefined);
  React.useEffect(() => React.startTransition(() => setLater(heard)), [heard]);
  return later;
}

/** Why nothing new is known; null while all is well. */
export function useProblem(): Problem | null {
  const { store } = useDesk();
  return React.useSyncExternalStore(store.subscribe, () => store.snapshot.problem);
}

/** How things stand for a kernel; null without one. */
export function useStanding(kernelId: string | null): Standing | null {
  const lists = { sessions: useHeard('sessions') };
  const problem = useProblem();
  return kernelId === null ? null : standingOf({ lists, problem }, kernelId);
}

export function useCurrent(): Current | null {
  const { current } = useDesk();
  return React.useSyncExternalStore(current.subscribe, current.getSnapshot);
}

export function useJobForm(): JobForm {
  const { jobForm } = useDesk();
  return React.useSyncExternalStore(jobForm.subscribe, jobForm.getSnapshot);
}

/** Now, by `performance.now()`; goes on by the second while `isTicking`. */
export function useNow(isTicking: boolean): number {
  React.useSyncExternalStore(isTicking ? onTick : never, tickedAt);
  return performance.now();
}

function never(): () => void {
  return () => undefined;
}

export interface Attempt {
  /** Do it, then look at what became of it. */
  readonly attempt: (action: () => Promise<void>) => void;
  readonly isBusy: boolean;
  /** Why the last one did not work. */
  readonly refusal: string | null;
}

/** For buttons: one thing at a time, and a refusal stays to be read. */
export function useAttempt(): Attempt {
  const { store, words } = useDesk();
  const [isBusy, setBusy] = React.useState(false);
  const [refusal, setRefusal] = React.useState<string | null>(null);
  const attempt = (action: () => Promise<void>): void => {
    setBusy(true);
    setRefusal(null);
    void action()
      .catch((error: unknown) => setRefusal(refusalText(error, words)))
      .then(() => store.refresh('sessions'))
      .finally(() => setBusy(false));
  };
  return { attempt, isBusy, refusal };
}

export function refusalText(error: unknown, words: Words): string {
  return error instanceof Refusal ? detailOf(error.problem, words) : String(error);
}
