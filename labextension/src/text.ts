/** Numbers and names as people read them. */

import { HOUR_MS, MINUTE_MS, SECOND_MS } from './timing';

const DAY_MS = 24 * HOUR_MS;
const GIB_MIB = 1024;
const WHOLE_GIB_FROM = 10;
const UNITS: readonly (readonly [number, string])[] = [
  [DAY_MS, 'd'],
  [HOUR_MS, 'h'],
  [MINUTE_MS, 'min'],
  [SECOND_MS, 's']
];

/** Two units at most: `2 h 5 min`, `3 min`, `12 s`. */
export function duration(ms: number): string {
  const first = UNITS.findIndex(([size]) => ms >= size);
  if (first < 0) {
    return '0 s';
  }
  let left = ms;
  const parts: string[] = [];
  for (const [size, unit] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count > 0) {
      parts.push(`${count} ${unit}`);
    }
  }
  return parts.join(' ');
}

/** One unit, for an estimate: `6 min`, `2 h`. */
export function roughly(ms: number): string {
  const [size, unit] = UNITS.find(([each]) => ms >= each) ?? [SECOND_MS, 's'];
  return `${Math.max(1, Math.round(ms / size))} ${unit}`;
}

/** `4:10`, `1:02:03`. */
export function countdown(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / SECOND_MS));
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const shown = parts[0] === 0 ? parts.slice(1) : parts;
  return shown.map((part, at) => (at === 0 ? `${part}` : `${part}`.padStart(2, '0'))).join(':');
}

/** `512 MiB`, `1.5 GiB`, `140 GiB`. */
export function memory(mib: number): string {
  return mib < GIB_MIB ? `${mib} MiB` : `${gib(mib)} GiB`;
}

/** `1.5 of 140 GiB`, in the words of a language. */
export function memoryOf(usedMib: number, totalMib: number, of: string): string {
  return totalMib < GIB_MIB
    ? `${usedMib} ${of} ${totalMib} MiB`
    : `${gib(usedMib)} ${of} ${gib(totalMib)} GiB`;
}

function gib(mib: number): string {
  const value = mib / GIB_MIB;
  return value >= WHOLE_GIB_FROM ? `${Math.round(value)}` : `${Math.round(value * 10) / 10}`;
}

/** `H200`, `H200 1g.18gb`, `2 × H200`. */
export function devices(models: readonly string[], profiles: readonly (string | null)[]): string {
  const names = models.map((model, at) =>
    [shortModel(model), profiles[at]].filter(Boolean).join(' ')
  );
  const [first] = names;
  if (first === undefined) {
    return 'GPU';
  }
  return names.length === 1 ? first : `${names.length} × ${first}`;
}

/** Without the maker's name, which is always the same. */
export function shortModel(model: string): string {
  return clean(model.replace(/^NVIDIA\s+/, ''));
}

/** The file's name of a notebook's path. */
export function baseName(path: string): string {
  return clean(path.slice(path.lastIndexOf('/') + 1) || path);
}

/** The folder of a path; '' for the topmost. */
export function folderName(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

// Controls, and characters that are invisible or change the direction of what follows; but for the two joiners that
// several scripts and emoji need.
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

// What moves the cursor, colours text or names the window of a terminal.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;
const OVERWRITTEN = /[^\n]*\r(?=[^\r\n])/g;

/** Output as a terminal would leave it: progress bars at their last state, nothing that could disguise what is there. */
export function printed(text: string): string {
  return text
    .replace(ESCAPES, '')
    .replace(OVERWRITTEN, '')
    .replace(/\r/g, '')
    .split(/([\n\t])/)
    .map(part => (part === '\n' || part === '\t' ? part : clean(part)))
    .join('');
}

/** Others chose these names: what cannot be seen is shown by its number. */
export function clean(name: string): string {
  return name.replace(UNSEEN, unseen => {
    const code = (unseen.codePointAt(0) ?? 0).toString(16).padStart(4, '0');
    return `\\u${code}`;
  });
}
