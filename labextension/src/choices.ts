/** What can be asked for, read from what there is: each kind of slot once. */

import { memory, shortModel } from './text';
import { HOUR_MS, MINUTE_MS } from './timing';
import { GpuView, SlotView, SpecBody } from './wire';
import { Words } from './words';

const GIB_MIB = 1024;

export const DURATIONS = [
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  4 * HOUR_MS,
  8 * HOUR_MS,
  24 * HOUR_MS
];

/** Bounds of the number that is typed in, in GiB. */
export const MEMORY_CHOICE = { first: 16, most: 16_384 };

export interface Choice {
  readonly id: string;
  readonly kind: 'gpu' | 'slice' | 'memory';
  readonly label: string;
  readonly model: string | null;
  readonly profile: string | null;
  readonly slots: readonly SlotView[];
  readonly free: number;
}

/** Whole GPUs of any model, of each model, slices, and by memory. */
export function choicesOf(gpus: readonly GpuView[], words: Words): readonly Choice[] {
  const slots = gpus.flatMap(gpu => gpu.slots.map(slot => ({ slot, model: gpu.model })));
  const whole = slots.filter(({ slot }) => slot.kind === 'gpu');
  const models = [...new Set(whole.map(({ model }) => model))];
  const profiles = [...new Set(slots.flatMap(({ slot }) => slot.profile ?? []))].sort();
  const choices: Choice[] = [];
  if (models.length > 1) {
    choices.push(
      choice(
        'gpu',
        words.anyGpu,
        null,
        null,
        whole.map(each => each.slot)
      )
    );
  }
  for (const model of models) {
    const ofModel = whole.filter(each => each.model === model).map(each => each.slot);
    const label = [shortModel(model), sizeOf(ofModel)].join(' · ');
    choices.push(choice('gpu', label, model, null, ofModel));
  }
  for (const profile of profiles) {
    const ofProfile = slots.filter(({ slot }) => slot.profile === profile).map(each => each.slot);
    choices.push(
      choice('slice', [profile, sizeOf(ofProfile)].join(' · '), null, profile, ofProfile)
    );
  }
  if (slots.length > 0) {
    choices.push(
      choice(
        'memory',
        words.byMemory,
        null,
        null,
        slots.map(each => each.slot)
      )
    );
  }
  return choices;
}

export function specOf(choice: Choice, count: number, memoryGib: number): SpecBody {
  switch (choice.kind) {
    case 'memory':
      return { memory_mib_min: memoryGib * GIB_MIB };
    case 'slice':
      return { profile: choice.profile };
    case 'gpu':
      return { count, model: choice.model };
  }
}

function choice(
  kind: Choice['kind'],
  label: string,
  model: string | null,
  profile: string | null,
  slots: readonly SlotView[]
): Choice {
  const free = slots.filter(slot => slot.state === 'free').length;
  return { id: [kind, model, profile].join('|'), kind, label, model, profile, slots, free };
}

function sizeOf(slots: readonly SlotView[]): string {
  const [first] = slots;
  return first === undefined ? '' : memory(first.memory_mib);
}
