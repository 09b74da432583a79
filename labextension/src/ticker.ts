/** One clock for all countdowns on the screen; it stands still while there are none. */

import { TICK_MS } from './timing';

const listeners = new Set<() => void>();
let timer = 0;
let nowMs = performance.now();

export function onTick(listener: () => void): () => void {
  if (listeners.size === 0) {
    nowMs = performance.now();
    timer = window.setInterval(tick, TICK_MS);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) {
      window.clearInterval(timer);
    }
  };
}

/** The time of the last tick, by `performance.now()`. */
export function tickedAt(): number {
  return nowMs;
}

function tick(): void {
  nowMs = performance.now();
  listeners.forEach(listener => listener());
}
