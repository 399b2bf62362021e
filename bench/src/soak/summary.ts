import { markdownTable } from '../report/markdown.ts';
import { type AtRest, heldBytes, type Reading, residentBytes } from './reading.ts';
import { residentKindNames } from './resident-kinds.ts';
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
  const both = (read: (rest: AtRest) => number): string[] => [mib(read(before)), mib(read(after))];
  return [
    ['at rest', 'before', 'after'],
    ['resident memory', ...both((rest) => residentBytes(rest))],
    ...residentKindNames.map((kind) => [`of it: ${kind}`, ...both(({ residentKiB }) => residentKiB[kind] * 1024)]),
    ['in malloc: in use', ...both(({ malloc }) => malloc.used)],
    ['in malloc: free', ...both(({ malloc }) => malloc.free)],
    ['resident but for what malloc has free', ...both((rest) => heldBytes(rest))],
    ['heap of the main thread', ...both(({ heapBytes }) => heapBytes.main)],
    ['heaps of the workers', ...both(({ heapBytes }) => heapBytes.workers)],
    ...kinds.map((kind) => [`descriptors: ${kind}`, String(before.files[kind] ?? 0), String(after.files[kind] ?? 0)]),
  ];
}

function inWords(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([what, count]) => `${what} ${count}`)
    .join(', ');
}
