/**
 * What the broker said last, for the whole window. Everything on the screen reads from here, so twenty notebooks ask no
 * more often than one. Lists are asked for when an event hints at a change, when they are new on the screen, and now and
 * then in case a hint got lost; a failure is tried again until it heals.
 */

import { DisposableDelegate, IDisposable } from '@lumino/disposable';
import { ISignal, Signal } from '@lumino/signaling';

import { BrokerApi, ListName, Lists, Refusal } from './api';
import { shared } from './sharing';
import {
  REFRESH_HIDDEN_MS,
  REFRESH_VISIBLE_MS,
  RETRY_FIRST_MS,
  RETRY_LAST_MS,
  SAMPLE_MS
} from './timing';
import { Problem } from './wire';

/** A list and when it came, by `performance.now()`: the durations in it count from then. */
export interface Heard<View> {
  readonly view: View;
  readonly atMs: number;
}

export interface Snapshot {
  readonly lists: { readonly [Name in ListName]?: Heard<Lists[Name]> | undefined };
  /** Why nothing new is known; null while all is well. */
  readonly problem: Problem | null;
}

/** Notices, chips and the status bar need it, on the screen or not. */
const ALWAYS: ListName = 'sessions';

export class Store {
  constructor(private readonly api: Pick<BrokerApi, 'list'>) {}

  get changed(): ISignal<this, void> {
    return this.signal;
  }

  get snapshot(): Snapshot {
    return this.current;
  }

  /** For React's `useSyncExternalStore`. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.changed.connect(listener);
    return () => void this.changed.disconnect(listener);
  };

  start(): void {
    document.addEventListener('visibilitychange', this.onVisibility);
    this.refreshAll();
  }

  dispose(): void {
    document.removeEventListener('visibilitychange', this.onVisibility);
    window.clearTimeout(this.timer);
    window.clearInterval(this.sampler);
    Signal.clearData(this);
  }

  /** Keep these lists up to date, live numbers included, until disposed of. */
  show(names: readonly ListName[]): IDisposable {
    names.forEach(name => this.shown.set(name, (this.shown.get(name) ?? 0) + 1));
    names.forEach(name => void this.refresh(name));
    this.sample();
    return new DisposableDelegate(() => {
      names.forEach(name => this.shown.set(name, (this.shown.get(name) ?? 1) - 1));
      this.sample();
    });
  }

  /** An event said that these may have changed. */
  hinted(names: readonly string[]): void {
    // When one's turn comes follows from what the holders do.
    const meant = names.includes('sessions') ? [...names, 'queue'] : names;
    this.wanted()
      .filter(name => meant.includes(name))
      .forEach(name => void this.refresh(name));
  }

  /** Ask now. Of calls that come while one is under way, one more is made after it. */
  async refresh(name: ListName): Promise<void> {
    if (this.asking.has(name)) {
      this.asking.set(name, true);
      return;
    }
    do {
      this.asking.set(name, false);
      await this.ask(name);
    } while (this.asking.get(name) === true);
    this.asking.delete(name);
  }

  private async ask(name: ListName): Promise<void> {
    try {
      const view = shared(this.current.lists[name]?.view, await this.api.list(name));
      const heard = { view, atMs: performance.now() };
      this.retryMs = RETRY_FIRST_MS;
      this.become({ lists: { ...this.current.lists, [name]: heard }, problem: null });
    } catch (error) {
      if (!(error instanceof Refusal)) {
        throw error;
      }
      this.become({ ...this.current, problem: error.problem });
    }
    this.schedule();
  }

  private become(next: Snapshot): void {
    this.current = next;
    this.signal.emit();
  }

  private wanted(): ListName[] {
    const shown = [...this.shown].filter(([, count]) => count > 0).map(([name]) => name);
    return document.hidden ? [ALWAYS] : [...new Set([ALWAYS, ...shown])];
  }

  private refreshAll(): void {
    this.wanted().forEach(name => void this.refresh(name));
  }

  private schedule(): void {
    let inMs = document.hidden ? REFRESH_HIDDEN_MS : REFRESH_VISIBLE_MS;
    if (this.current.problem !== null) {
      inMs = this.retryMs;
      this.retryMs = Math.min(2 * this.retryMs, RETRY_LAST_MS);
    }
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.refreshAll(), inMs);
  }

  /** Live numbers are fetched only while somebody can see them. */
  private sample(): void {
    window.clearInterval(this.sampler);
    if (!document.hidden && (this.shown.get('gpus') ?? 0) > 0) {
      this.sampler = window.setInterval(() => {
        if (this.current.problem === null) {
          void this.refresh('gpus');
        }
      }, SAMPLE_MS);
    }
  }

  private readonly onVisibility = (): void => {
    this.sample();
    this.refreshAll();
  };

  private readonly signal = new Signal<this, void>(this);
  private current: Snapshot = { lists: {}, problem: null };
  private readonly shown = new Map<ListName, number>();
  /** Lists that are being asked for; true: ask again after that. */
  private readonly asking = new Map<ListName, boolean>();
  private retryMs = RETRY_FIRST_MS;
  private timer = 0;
  private sampler = 0;
}
