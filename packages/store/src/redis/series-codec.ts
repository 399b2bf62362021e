import { CODE_CLASSES, COUNTER_NAMES, type Counters, countersFrom } from '@weir/model/data-plane';

const COUNTER_COUNT = COUNTER_NAMES.length + CODE_CLASSES.length;

/** Decodes a point that `points.lua` has written. `reasons` has the reasons of refusals by number. */
export function decodePoint(point: Uint8Array, reasons: ReadonlyMap<number, string>): Counters {
  const numbers = decodeNumbers(point);
  const refused: [string, number][] = [];
  for (let index = COUNTER_COUNT; index + 1 < numbers.length; index += 2) {
    const count = numbers[index + 1] ?? 0;
    if (count > 0) refused.push([reasons.get(numbers[index] ?? 0) ?? 'other', count]);
  }
  return countersFrom(numbers.slice(0, COUNTER_COUNT), refused.length === 0 ? undefined : Object.fromEntries(refused));
}

/** Decodes the hash `usage:reasons`: reason → number. */
export function decodeReasons(hash: Readonly<Record<string, string>>): ReadonlyMap<number, string> {
  return new Map(Object.entries(hash).map(([reason, number]) => [Number(number), reason]));
}

/** Decodes numbers in groups of 7 bits, the lowest first. Multiplies instead of shifting, because numbers have up to 53 bits. */
function decodeNumbers(bytes: Uint8Array): number[] {
  const numbers: number[] = [];
  let number = 0;
  let scale = 1;
  for (const byte of bytes) {
    number += (byte % 128) * scale;
    scale *= 128;
    if (byte >= 128) continue;
    numbers.push(number);
    number = 0;
    scale = 1;
  }
  return numbers;
}
