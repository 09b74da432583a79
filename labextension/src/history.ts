/** The last few minutes of each own slot, for the curves on its card. Grows only while the panel is on the screen. */

import { Snapshot, Store } from './store';
import { SAMPLES_KEPT } from './timing';

/** Null where the broker did not know. */
export interface Sample {
  /** A share of 1. */
  readonly load: number | null;
  readonly memoryMib: number | null;
}

const PERCENT = 100;

export class History {
  constructor(store: Store) {
    store.changed.connect(() => this.note(store.snapshot));
  }

  of(slotId: string): readonly Sample[] {
    return this.bySlot.get(slotId) ?? [];
  }

  private note({ lists }: Snapshot): void {
    const heard = lists.gpus;
    if (heard === undefined || heard.atMs === this.atMs) {
      return;
    }
    this.atMs = heard.atMs;
    const next = new Map<string, readonly Sample[]>();
    for (const slot of heard.view.gpus.flatMap(gpu => gpu.slots)) {
      if (slot.lease_id !== null) {
        const percent = slot.utilisation_percent;
        const load = percent === null ? null : percent / PERCENT;
        const sample = { load, memoryMib: slot.memory_used_mib };
        next.set(slot.id, [...this.of(slot.id), sample].slice(-SAMPLES_KEPT));
      }
    }
    this.bySlot = next;
  }

  private bySlot = new Map<string, readonly Sample[]>();
  private atMs = 0;
}
