import { type Entry, type RoutingTable, tableOf } from '@weir/model';
import { entry } from './sample.ts';

/** A table of eight or so entries, of which a part, or a mixture of two versions, is told from the whole. */
export function wholeTable(version: number): RoutingTable {
  const names = Array.from({ length: 9 }, (_, index) => `n${index}`).filter((_, index) => index !== version % 9);
  return tableOf(names.map((name): Entry => entry(name, version)));
}

export function isWhole(table: RoutingTable): boolean {
  const [first] = table.entries.values();
  if (first?.kind !== 'node') return false;
  const version = Number(first.bindAddresses[0]?.split('.')[3]);
  const whole = wholeTable(version);
  return (
    table.entries.size === whole.entries.size &&
    [...table.entries].every(([id, each]) => JSON.stringify(whole.entries.get(id)) === JSON.stringify(each))
  );
}
