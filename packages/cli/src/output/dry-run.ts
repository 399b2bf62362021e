import type { Problem, ServiceStatus, tableToJson } from '@weir/model';
import { type Colourize, colourizeFor } from './colour.ts';
import { toSingleLine } from './printable.ts';
import { problemsText } from './problem-text.ts';
import { tableText } from './table.ts';

/** What `weir translate` prints. */
export interface DryRun {
  readonly table: ReturnType<typeof tableToJson>;
  readonly statuses: readonly ServiceStatus[];
  readonly problems: readonly Problem[];
  /** Well-formed objects of kinds that Weir does not read, by kind. */
  readonly ignored: Readonly<Record<string, number>>;
}

export function dryRunText(run: DryRun, colour: boolean): string {
  const paint = colourizeFor(colour);
  const parts = [servicesText(run, paint), problemsText(run.problems, paint), ignoredText(run.ignored)];
  return parts.filter((part) => part !== '').join('\n');
}

function servicesText({ table, statuses }: DryRun, paint: Colourize): string {
  if (statuses.length === 0) return '';
  const ready = (uid: string): number =>
    Math.max(0, ...endpointCounts(table.endpoints.filter((chunk) => chunk.service === uid)));
  return tableText<ServiceStatus>(
    [
      { title: 'SERVICE', value: (status) => `${status.namespace}/${status.name}` },
      { title: 'TENANT', value: (status) => status.tenant ?? '-' },
      {
        title: 'VERDICT',
        value: ({ accepted }) => paint(accepted.reason === 'Accepted' ? 'green' : 'red', accepted.reason),
      },
      {
        title: 'PORTS',
        value: ({ ports }) => ports.map(({ port, protocol }) => `${port}/${protocol}`).join(',') || '-',
      },
      { title: 'NODES', value: ({ nodes }) => nodes.join(',') || '-' },
      { title: 'ENDPOINTS', value: (status) => String(ready(status.uid)), align: 'right' },
    ],
    statuses,
  );
}

/** Ready endpoints of each port. */
function endpointCounts(chunks: DryRun['table']['endpoints']): number[] {
  const ports = Map.groupBy(chunks, (chunk) => `${chunk.protocol}/${chunk.port}`);
  return [...ports.values()].map((same) => same.reduce((sum, chunk) => sum + chunk.endpoints.length, 0));
}

function ignoredText(ignored: DryRun['ignored']): string {
  const kinds = Object.entries(ignored).sort(([a], [b]) => (a < b ? -1 : 1));
  if (kinds.length === 0) return '';
  return `Ignored, because Weir does not read their kind: ${kinds.map(([kind, count]) => `${count} ${toSingleLine(kind)}`).join(', ')}\n`;
}
