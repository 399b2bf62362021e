// The table of results in docs/reliability.md.
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { CONNECTION_LIMIT, RATE_LIMIT } from './limit-clients.ts';
import { type FaultResult, findingsFor } from './run-fault.ts';

const PAGE = fileURLToPath(new URL('../../../docs/reliability.md', import.meta.url));
const START = '<!-- results: written by npm run e2e -- faults -->';
const END = '<!-- end of results -->';

const COLUMNS = [
  'fault',
  'operations',
  'failed',
  'cut by the fault',
  'bytes in the ledger',
  'bytes on the wire',
  'difference',
  'Suspensions',
  'limits',
];

/** Returns the results as a Markdown table. */
export function formatResults(results: readonly FaultResult[]): string {
  const rows = [COLUMNS, COLUMNS.map(() => '---'), ...results.map(cellsOf)];
  return rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

function cellsOf(result: FaultResult): string[] {
  const { suspension, limits } = result;
  const effect = suspension.effectMs === undefined ? 'after the fault' : `after ${seconds(suspension.effectMs)}`;
  return [
    result.fault,
    count(result.operations),
    count(result.failures.length),
    count(result.cutOperations),
    count(result.ledgerBytes),
    count(result.wireBytes),
    count(result.ledgerBytes - result.wireBytes),
    `${count(suspension.breaches.length)} of ${count(suspension.attempts)} attempts served; a new Suspension took effect ${effect}`,
    `at most ${limits.maxOpen} of ${CONNECTION_LIMIT} connections; ${limits.maxPerSecond} of ${RATE_LIMIT} per second`,
  ];
}

/** Writes the results of a complete run without findings into the page. */
export function writeResults(results: readonly FaultResult[], { day }: { readonly day: string }): void {
  const bad = results.flatMap((result) => findingsFor(result).map((finding) => `${result.fault}: ${finding}`));
  if (bad.length > 0) throw new Error(`results with findings are not published: ${bad.join('; ')}`);
  const text = readFileSync(PAGE, 'utf8');
  const [start, end] = [text.indexOf(START), text.indexOf(END)];
  if (start < 0 || end < start) throw new Error(`${PAGE} lacks the markers ${START} and ${END}`);
  const run = `Run of ${day}, Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model.trim() ?? 'unknown'}).`;
  writeFileSync(PAGE, `${text.slice(0, start)}${START}\n\n${run}\n\n${formatResults(results)}\n\n${text.slice(end)}`);
}

function count(number: number): string {
  return number.toLocaleString('en-US');
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
