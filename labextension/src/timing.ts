/** How often things are looked at. Changes are told by events; these are for live numbers and for what got lost. */

export const SECOND_MS = 1_000;
export const MINUTE_MS = 60 * SECOND_MS;
export const HOUR_MS = 60 * MINUTE_MS;

/** Countdowns on the screen. */
export const TICK_MS = SECOND_MS;

/** Curves of utilisation and memory, while the panel is on the screen. */
export const SAMPLE_MS = 2 * SECOND_MS;
export const SAMPLES_KEPT = 90;

/** A form is let alone for so long before the broker is asked about it. */
export const SETTLE_MS = 250;

/** Output of a job, while it is on the screen. */
export const LOG_MS = SECOND_MS;
export const LOG_CHARACTERS_KEPT = 400_000;

/** What no event told. The server takes a page that is silent for 150 s to be gone. */
export const REFRESH_VISIBLE_MS = 20 * SECOND_MS;
export const REFRESH_HIDDEN_MS = MINUTE_MS;

/** After a failure: doubled each time, up to the last. */
export const RETRY_FIRST_MS = SECOND_MS;
export const RETRY_LAST_MS = 15 * SECOND_MS;
