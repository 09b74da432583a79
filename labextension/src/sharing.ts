/** Keeps what has not changed: a new answer takes over the parts of the last one that are equal, so that only the rest is drawn. */

type Parts = { readonly [key: string]: unknown };

export function shared<Value>(last: Value | undefined, next: Value): Value {
  return merged(last, next) as Value;
}

function merged(last: unknown, next: unknown): unknown {
  if (Object.is(last, next)) {
    return last;
  }
  if (Array.isArray(last) && Array.isArray(next)) {
    const parts = next.map((part, at) => merged(last[at], part));
    return last.length === next.length && parts.every((part, at) => part === last[at])
      ? last
      : parts;
  }
  if (isParts(last) && isParts(next)) {
    const names = Object.keys(next);
    const parts = Object.fromEntries(names.map(name => [name, merged(last[name], next[name])]));
    const isSame = names.length === Object.keys(last).length;
    return isSame && names.every(name => parts[name] === last[name]) ? last : parts;
  }
  return next;
}

function isParts(value: unknown): value is Parts {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
