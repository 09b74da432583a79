import * as React from 'react';

import { Choice, choicesOf, MEMORY_CHOICE, specOf } from '../choices';
import { useDesk, useHeard } from '../desk';
import { duration } from '../text';
import { SpecBody } from '../wire';

/** What is chosen, whatever there is to choose from. */
export interface Chosen {
  readonly id: string;
  readonly count: number;
  readonly memoryGib: number;
}

export const FIRST_CHOICE: Chosen = { id: '', count: 1, memoryGib: MEMORY_CHOICE.first };

/** The choice among what there is now; null while that is not known, or where there is nothing. */
export function useChoice(chosen: Chosen): Choice | null {
  const { words } = useDesk();
  const choices = choicesOf(useHeard('gpus')?.view.gpus ?? [], words);
  return choices.find(each => each.id === chosen.id) ?? choices[0] ?? null;
}

export function specOfChosen(choice: Choice, chosen: Chosen): SpecBody {
  return specOf(choice, chosen.count, chosen.memoryGib);
}

interface SlotFieldsProps {
  readonly choice: Choice;
  readonly chosen: Chosen;
  readonly onChange: (chosen: Chosen) => void;
}

/** Which slots one asks for: whole GPUs, a slice, or as much memory as is needed. */
export function SlotFields(props: SlotFieldsProps): React.JSX.Element {
  const { words } = useDesk();
  const choices = choicesOf(useHeard('gpus')?.view.gpus ?? [], words);
  const { choice, chosen, onChange } = props;
  return (
    <>
      <label>
        <span>{words.what}</span>
        <select
          className="gpb-Input"
          value={choice.id}
          onChange={event => onChange({ ...chosen, id: event.target.value })}
        >
          {choices.map(each => (
            <option key={each.id} value={each.id}>
              {each.label}
            </option>
          ))}
        </select>
      </label>
      {choice.kind === 'memory' && (
        <label>
          <span>{words.leastMemory}</span>
          <span className="gpb-Form-measure">
            <NumberInput
              value={chosen.memoryGib}
              most={MEMORY_CHOICE.most}
              onChange={memoryGib => onChange({ ...chosen, memoryGib })}
            />
            GiB
          </span>
        </label>
      )}
      {choice.kind === 'gpu' && choice.slots.length > 1 && (
        <label>
          <span>{words.count}</span>
          <NumberInput
            value={chosen.count}
            most={choice.slots.length}
            onChange={count => onChange({ ...chosen, count })}
          />
        </label>
      )}
    </>
  );
}

interface NumberInputProps {
  readonly value: number;
  readonly most: number;
  readonly onChange: (value: number) => void;
}

function NumberInput(props: NumberInputProps): React.JSX.Element {
  return (
    <input
      className="gpb-Input"
      type="number"
      required
      min={1}
      max={props.most}
      value={props.value}
      onChange={event => props.onChange(Number(event.target.value))}
    />
  );
}

interface TimeFieldProps {
  readonly label: string;
  /** The choice of no limit. */
  readonly unlimited: string;
  readonly choices: readonly number[];
  readonly value: number | null;
  readonly onChange: (ms: number | null) => void;
}

export function TimeField(props: TimeFieldProps): React.JSX.Element {
  return (
    <label>
      <span>{props.label}</span>
      <select
        className="gpb-Input"
        value={props.value ?? ''}
        onChange={event =>
          props.onChange(event.target.value === '' ? null : Number(event.target.value))
        }
      >
        <option value="">{props.unlimited}</option>
        {props.choices.map(each => (
          <option key={each} value={each}>
            {duration(each)}
          </option>
        ))}
      </select>
    </label>
  );
}
