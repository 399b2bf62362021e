import { markdownTable } from '../report/markdown.ts';
import type { Reading } from './reading.ts';
import { type ServiceName, serviceNames } from './services.ts';

/** What was read, as tables. */
export function summaryFor(
  reading: Reading,
  {
    minutes,
    born,
    rounds,
  }: { readonly minutes: number; readonly born: number; readonly rounds: Readonly<Record<string, number>> },
): string {
  const disturbed = Object.entries(rounds).map(([what, times]) => `${what} ${times}`);
  return [
    '',
    `${minutes} minutes, ${born} clients; disturbances: ${disturbed.join(', ')}.`,
    '',
    ...markdownTable([
      ['Service', 'clients connected', 'never seen', 'given', 'outcomes', 'received', 'sent', 'how clients ended'],
      ...serviceNames.map((name) => rowOf(name, reading)),
    ]),
    '',
    ...markdownTable(atRestRows(reading)),
    '',
  ].join('\n');
}

function rowOf(name: ServiceName, { view, ledger, tallies, datagrams }: Reading): string[] {
  const { established, ends } = tallies[name];
  const outcomes = view.services.find((service) => service.name === name)?.outcomes ?? {};
  const metered = ledger[name];
  const isDatagrams = name === 'datagrams';
  return [
    name,
    String(isDatagrams ? datagrams.sockets : established),
    isDatagrams ? '' : String(established - Object.values(outcomes).reduce((sum, each) => sum + each, 0)),
    String(metered?.connections ?? ''),
    inWords(outcomes),
    String(metered?.receivedBytes ?? ''),
    String(metered?.sentBytes ?? ''),
    isDatagrams ? `answered ${datagrams.answered}` : inWords(ends),
  ];
}

function atRestRows({ before, after }: Reading): string[][] {
  const kinds = [...new Set([...Object.keys(before.files), ...Object.keys(after.files)])].sort();
  const mib = (bytes: number): string => `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
  return [
    ['at rest', 'before', 'after'],
    ['resident memory', mib(before.residentKiB * 1024), mib(after.residentKiB * 1024)],
    ['heap of the main thread', mib(before.heapBytes.main), mib(after.heapBytes.main)],
    ['heaps of the workers', mib(before.heapBytes.workers), mib(after.heapBytes.workers)],
    ...kinds.map((kind) => [`descriptors: ${kind}`, String(before.files[kind] ?? 0), String(after.files[kind] ?? 0)]),
  ];
}

function inWords(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
}
