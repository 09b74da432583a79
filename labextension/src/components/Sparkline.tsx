import * as React from 'react';

import { SAMPLES_KEPT } from '../timing';

const WIDTH = 120;
const HEIGHT = 20;
const STROKE = 1.5;

interface SparklineProps {
  readonly label: string;
  readonly value: string;
  /** Shares of 1, oldest first; null leaves a gap. */
  readonly shares: readonly (number | null)[];
}

/** A curve of the last minutes with its present value. */
export function Sparkline(props: SparklineProps): React.JSX.Element {
  return (
    <figure className="gpb-Sparkline" aria-label={`${props.label}: ${props.value}`} role="img">
      <figcaption aria-hidden="true">{props.label}</figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
        <path className="gpb-Sparkline-area" d={area(props.shares)} />
        <path
          className="gpb-Sparkline-line"
          d={line(props.shares)}
          vectorEffect="non-scaling-stroke"
        />
      </svg>
      <span className="gpb-Number" aria-hidden="true">
        {props.value}
      </span>
    </figure>
  );
}

type Point = readonly [number, number];

/** Runs of known values, the newest at the right edge. */
function runs(shares: readonly (number | null)[]): Point[][] {
  const found: Point[][] = [];
  let run: Point[] = [];
  shares.forEach((share, at) => {
    if (share === null) {
      run = [];
      return;
    }
    if (run.length === 0) {
      found.push(run);
    }
    const x = WIDTH * (1 - (shares.length - 1 - at) / (SAMPLES_KEPT - 1));
    const y = STROKE / 2 + (HEIGHT - STROKE) * (1 - Math.min(1, Math.max(0, share)));
    run.push([x, y]);
  });
  return found;
}

function line(shares: readonly (number | null)[]): string {
  return runs(shares).map(polyline).join('');
}

function area(shares: readonly (number | null)[]): string {
  return runs(shares)
    .map(run => {
      const [first, last] = [run[0], run[run.length - 1]];
      return first && last ? `${polyline(run)}L${last[0]} ${HEIGHT}L${first[0]} ${HEIGHT}Z` : '';
    })
    .join('');
}

function polyline(run: readonly Point[]): string {
  return run.map(([x, y], at) => `${at === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');
}
