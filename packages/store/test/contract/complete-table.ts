import { isDeepStrictEqual } from 'node:util';
import { type CertificateEntry, type Entry, type RoutingTable, tableOf } from '@weir/model';
import { certificate, entry } from './sample-data.ts';

/**
 * Returns a table of about ten entries. `isComplete` can distinguish this table from a part of the table and from a mixture of two
 * versions.
 */
export function completeTable(version: number): RoutingTable {
  const names = Array.from({ length: 9 }, (_, index) => `n${index}`).filter((_, index) => index !== version % 9);
  return tableOf([...names.map((name): Entry => entry(name, version)), ...certificatesAt(version)]);
}

/**
 * Returns a certificate that changes with each version, a certificate that changes every four versions, and, for even versions, a third
 * certificate.
 */
function certificatesAt(version: number): readonly CertificateEntry[] {
  const sometimes = version % 2 === 0 ? [certificate('sometimes', version)] : [];
  return [certificate('often', version), certificate('seldom', Math.floor(version / 4)), ...sometimes];
}

/**
 * Reports whether all entries except certificates are the entries of one `completeTable`. A certificate may be older or missing while its
 * key is being replaced, but all of its fields must be of one version.
 */
export function isComplete(table: RoutingTable): boolean {
  const entries = [...table.entries.values()];
  const certificates = entries.filter((each) => each.kind === 'certificate');
  const others = entries.filter((each) => each.kind !== 'certificate');
  const [first] = others;
  if (first?.kind !== 'node') return false;
  const version = Number(first.bindAddresses[0]?.split('.')[3]);
  const expected = completeTable(version);
  return (
    others.length === expected.entries.size - certificatesAt(version).length &&
    others.every((each) => isDeepStrictEqual(expected.entries.get(each.id), each)) &&
    certificates.every((each) => isDeepStrictEqual(certificate(each.service, Number(each.chain.split(' ')[1])), each))
  );
}
