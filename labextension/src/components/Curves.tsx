import * as React from 'react';

import { useDesk, useHeard } from '../desk';
import { Sample } from '../history';
import { memory } from '../text';
import { LeaseView } from '../wire';
import { Sparkline } from './Sparkline';

const PERCENT = 100;

/** The last minutes of a lease: the load of its busiest slot, the memory of all. */
export function Curves(props: { readonly lease: LeaseView }): React.JSX.Element {
  const { history, words } = useDesk();
  useHeard('gpus');
  const { lease } = props;
  const moments = transposed(lease.slots.map(slot => history.of(slot)));
  const loads = moments.map(samples => highest(samples.map(sample => sample.load)));
  const memories = moments.map(samples => sum(samples.map(sample => sample.memoryMib)));
  const load = loads[loads.length - 1] ?? null;
  const used = memories[memories.length - 1] ?? null;
  return (
    <div className="gpb-Card-curves">
      <Sparkline
        label={words.load}
        shares={loads}
        value={load === null ? '–' : `${Math.round(load * PERCENT)} %`}
      />
      <Sparkline
        label={words.memory}
        shares={memories.map(each => (each === null ? null : each / lease.memory_mib))}
        value={used === null ? '–' : memory(used)}
      />
    </div>
  );
}

/** From curves of slots to moments, as far back as all of them go. */
function transposed(curves: readonly (readonly Sample[])[]): readonly (readonly Sample[])[] {
  const length = Math.min(...curves.map(curve => curve.length));
  const recent = curves.map(curve => curve.slice(curve.length - length));
  return Array.from({ length: Number.isFinite(length) ? length : 0 }, (_, at) =>
    recent.flatMap(curve => curve[at] ?? [])
  );
}

function highest(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter(isKnown);
  return known.length === 0 ? null : Math.max(...known);
}

/** Null where one is unknown. */
function sum(numbers: readonly (number | null)[]): number | null {
  const known = numbers.filter(isKnown);
  return known.length < numbers.length ? null : known.reduce((total, each) => total + each, 0);
}

function isKnown(number: number | null): number is number {
  return number !== null;
}
