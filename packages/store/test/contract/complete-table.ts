import { isDeepStrictEqual } from 'node:util';
import { type CertificateEntry, type Entry, type RoutingTable, tableOf } from '@weir/model';
import { certificate, entry } from './sample-data.ts';

/** A table of ten or so entries, of which a part, or a mixture of two versions, is told from the whole. */
export function completeTable(version: number): RoutingTable {
  const names = Array.from({ length: 9 }, (_, index) => `n${index}`).filter((_, index) => index !== version % 9);
  return tableOf([...names.map((name): Entry => entry(name, version)), ...certificatesAt(version)]);
}

/** One is renewed by each version, one seldom, and one comes and goes. */
function certificatesAt(version: number): readonly CertificateEntry[] {
  const sometimes = version % 2 === 0 ? [certificate('sometimes', version)] : [];
  return [certificate('often', version), certificate('seldom', Math.floor(version / 4)), ...sometimes];
}

/**
 * But for certificates: while their keys are replaced they may be older than the rest for a moment, or not there yet; each is still of one
 * version in itself.
 */
export function isComplete(table: RoutingTable): boolean {
  const entries = [...table.entries.values()];
  const certificates = entries.filter((each) => each.kind === 'certificate');
  const others = entries.filter((each) => each.kind !== 'certificate');
  const [first] = others;
  if (first?.kind !== 'node') return false;
  const version = Number(first.bindAddresses[0]?.split('.')[3]);
  const whole = completeTable(version);
  return (
    others.length === whole.entries.size - certificatesAt(version).length &&
    others.every((each) => isDeepStrictEqual(whole.entries.get(each.id), each)) &&
    certificates.every((each) => isDeepStrictEqual(certificate(each.service, Number(each.chain.split(' ')[1])), each))
  );
}
