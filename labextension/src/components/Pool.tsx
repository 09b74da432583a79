import * as React from 'react';

import { useDesk, useHeardLater } from '../desk';
import { memory, memoryOf, shortModel } from '../text';
import { GpuView, SlotView } from '../wire';
import { sentenceOf, SlotLook, Words } from '../words';
import { Section } from './Section';
import { Sentence } from './Text';

const LOOKS: readonly SlotLook[] = ['free', 'mine', 'taken', 'clearing', 'unusable'];

/** All GPUs, their slices drawn to scale, with the memory in use. */
export function Pool(): React.JSX.Element {
  const { words } = useDesk();
  const heard = useHeardLater('gpus');
  const gpus = heard?.view.gpus ?? [];
  const slots = gpus.flatMap(gpu => gpu.slots);
  const seen = new Set(slots.map(lookOf));
  const hasNodes = new Set(gpus.map(gpu => gpu.node)).size > 1;
  const aside =
    slots.length === 0 ? undefined : words.freeOf(slots.filter(isFree).length, slots.length);
  return (
    <Section title={words.pool} aside={aside}>
      {heard?.view.problem != null && (
        <p className="gpb-Refused">
          <Sentence of={heard.view.problem} />
        </p>
      )}
      {heard !== undefined && gpus.length === 0 && <p className="gpb-Empty">{words.noGpus}</p>}
      <ul className="gpb-Pool">
        {gpus.map(gpu => (
          <GpuRow key={gpu.uuid} gpu={gpu} node={hasNodes ? gpu.node : null} words={words} />
        ))}
      </ul>
      {gpus.some(gpu => gpu.simulated) && <p className="gpb-Pool-note">{words.simulated}</p>}
      <ul className="gpb-Legend" aria-hidden="true">
        {LOOKS.filter(look => seen.has(look)).map(look => (
          <li key={look}>
            <span className={`gpb-Slot gpb-mod-${look}`} />
            {words.slotStates[look]}
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface GpuRowProps {
  readonly gpu: GpuView;
  readonly node: string | null;
  readonly words: Words;
}

const GpuRow = React.memo(function GpuRow(props: GpuRowProps): React.JSX.Element {
  const { gpu, words } = props;
  const used = sum(gpu.slots.map(slot => slot.memory_used_mib));
  const usedText = used === null ? '–' : memoryOf(used, gpu.memory_mib, words.of);
  const name = [props.node, `${gpu.index}`, shortModel(gpu.model)].filter(Boolean).join(' · ');
  const label = words.gpuSummary(gpu.slots.filter(isFree).length, gpu.slots.length, usedText);
  return (
    <li className="gpb-Gpu" aria-label={`${words.gpu} ${name}: ${label}`}>
      <div className="gpb-Gpu-header">
        <span className="gpb-Gpu-name" title={name}>
          {name}
        </span>
        <span className="gpb-Number gpb-Row-detail">{usedText}</span>
      </div>
      <div className="gpb-Gpu-slots">
        {gpu.slots.map(slot => (
          <SlotBox key={slot.id} slot={slot} words={words} />
        ))}
      </div>
    </li>
  );
});

const SlotBox = React.memo(function SlotBox(props: {
  readonly slot: SlotView;
  readonly words: Words;
}): React.JSX.Element {
  const { slot, words } = props;
  const look = lookOf(slot);
  const used = slot.memory_used_mib;
  const hint = [
    [slot.profile, memory(slot.memory_mib), words.slotStates[look]].filter(Boolean).join(' · '),
    slot.reason === null ? '' : sentenceOf(slot.reason, words)
  ];
  return (
    <div
      className={`gpb-Slot gpb-mod-${look}`}
      style={{ flexGrow: slot.memory_mib }}
      title={hint.join('\n').trim()}
    >
      {used !== null && (
        <div
          className="gpb-Slot-used"
          style={{ transform: `scaleX(${Math.min(1, used / slot.memory_mib)})` }}
        />
      )}
      {slot.profile !== null && (
        <span className="gpb-Slot-profile">{slot.profile.split('.')[0]}</span>
      )}
    </div>
  );
});

function lookOf(slot: SlotView): SlotLook {
  if (slot.lease_id !== null) {
    return 'mine';
  }
  switch (slot.state) {
    case 'free':
      return 'free';
    case 'draining':
      return 'clearing';
    case 'quarantined':
      return 'unusable';
    default:
      return 'taken';
  }
}

function isFree(slot: SlotView): boolean {
  return slot.state === 'free';
}

/** Null where one is unknown. */
function sum(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter((number): number is number => number !== null);
  return known.length < numbers.length ? null : known.reduce((total, number) => total + number, 0);
}
