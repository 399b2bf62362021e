import type { Metered } from '../subjects/subject.ts';

/** What was moved, as far as the clients know: exactly, or from `least` to `most`. */
export type Moved = Readonly<Record<keyof Metered, Range>>;

type Range = { readonly least: number; readonly most: number };

const counters = ['receivedBytes', 'sentBytes', 'connections'] as const;

export const nothing: Moved = exactly({ receivedBytes: 0, sentBytes: 0, connections: 0 });

export function exactly(metered: Metered): Moved {
  return between(metered, metered);
}

export function between(least: Metered, most: Metered): Moved {
  return combine((counter) => ({ least: least[counter], most: most[counter] }));
}

export function plus(a: Moved, b: Moved): Moved {
  return combine((counter) => ({
    least: a[counter].least + b[counter].least,
    most: a[counter].most + b[counter].most,
  }));
}

/** Where a ledger differs from what was moved, in words; empty when it does not. */
export function differences(metered: Metered, moved: Moved): string[] {
  return counters
    .filter((counter) => metered[counter] < moved[counter].least || metered[counter] > moved[counter].most)
    .map((counter) => `${counter} is ${metered[counter]}, and ${inWords(moved[counter])} moved`);
}

function inWords({ least, most }: Range): string {
  return least === most ? `${least} were` : `${least} to ${most} were`;
}

function combine(range: (counter: keyof Metered) => Range): Moved {
  return {
    receivedBytes: range('receivedBytes'),
    sentBytes: range('sentBytes'),
    connections: range('connections'),
  };
}
