/** A batch job's output as it grows: the end of what there is, then what comes, for as long as somebody follows it. */

import { Signal } from '@lumino/signaling';

import { BrokerApi, Refusal } from './api';
import { LOG_CHARACTERS_KEPT, LOG_MS } from './timing';
import { Piece, Problem } from './wire';

export interface Log {
  readonly stdout: string;
  readonly stderr: string;
  /** There was more before it. */
  readonly isCut: boolean;
  readonly isLoaded: boolean;
  readonly problem: Problem | null;
}

const STREAMS = ['stdout', 'stderr'] as const;

export class JobLog {
  /** `isOver`: does the job write nothing any more? */
  constructor(
    private readonly api: Pick<BrokerApi, 'output'>,
    private readonly jobId: string,
    private readonly isOver: () => boolean
  ) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.changed.connect(listener);
    return () => void this.changed.disconnect(listener);
  };

  readonly getSnapshot = (): Log => this.log;

  follow(): void {
    if (!this.isFollowed) {
      this.isFollowed = true;
      void this.look();
    }
  }

  unfollow(): void {
    this.isFollowed = false;
    window.clearTimeout(this.timer);
  }

  private async look(): Promise<void> {
    const wasOver = this.isOver();
    const hasGrown = await this.grow();
    if (this.isFollowed && (hasGrown || !wasOver || this.log.problem !== null)) {
      this.timer = window.setTimeout(() => void this.look(), hasGrown ? 0 : LOG_MS);
    }
  }

  private async grow(): Promise<boolean> {
    try {
      const view = await this.api.output(this.jobId, this.ends);
      const next = { ...this.log, isLoaded: true, problem: null };
      STREAMS.forEach(name => {
        next[name] = kept(this.log[name] + view[name].text);
        next.isCut ||= this.isCutBy(name, view[name]);
        this.ends[name] = view[name].end;
      });
      this.become(next);
      return STREAMS.some(name => view[name].text !== '');
    } catch (error) {
      if (!(error instanceof Refusal)) {
        throw error;
      }
      this.become({ ...this.log, problem: error.problem });
      return false;
    }
  }

  private isCutBy(name: 'stdout' | 'stderr', piece: Piece): boolean {
    const isFirst = this.ends[name] === undefined;
    return (
      (isFirst && piece.start > 0) ||
      this.log[name].length + piece.text.length > LOG_CHARACTERS_KEPT
    );
  }

  private become(next: Log): void {
    this.log = next;
    this.changed.emit();
  }

  private readonly changed = new Signal<this, void>(this);
  private readonly ends: Record<string, number> = {};
  private log: Log = { stdout: '', stderr: '', isCut: false, isLoaded: false, problem: null };
  private isFollowed = false;
  private timer = 0;
}

/** The end of it, from the beginning of a line. */
function kept(text: string): string {
  if (text.length <= LOG_CHARACTERS_KEPT) {
    return text;
  }
  const end = text.slice(-LOG_CHARACTERS_KEPT);
  return end.slice(end.indexOf('\n') + 1);
}
