import {
  certificateValidityFor,
  NO_ALLOCATIONS,
  type Problem,
  type ServiceStatus,
  tableToJson,
  translate,
} from '@weir/model';
import { systemClock } from '@weir/runtime';
import type { Command } from 'commander';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM } from '../command-context.ts';
import { type Colourize, colourizeFor, toSingleLine } from '../output/ansi.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { problemsText } from '../output/problem-text.ts';
import { countServices, type ServiceCounts, serviceCountsText } from '../output/service-counts.ts';
import { tableText } from '../output/table.ts';
import { fleetSettingsFor, resolveFleetOptions } from '../standalone/directory-settings.ts';
import { addManifestOptions, type ManifestOptions, readManifestInput } from './manifest-options.ts';

const EXAMPLES = `
Examples:
  weir translate -f manifests/                   a line for each Service, and every problem
  weir translate -f manifests/ --classless       include Services without a loadBalancerClass
  weir translate -f . --node edge=192.0.2.10 -o json
  kubectl kustomize apps/ | weir translate -f -

The exit code is 1 if a problem of severity error was found. Warnings do not count.`;

export function addTranslate(program: Command, { terminal, finish }: CommandContext): void {
  addManifestOptions(program.command('translate'))
    .description('dry run: print the routing table that Weir makes from manifests, and every problem')
    .addOption(outputOption())
    .addHelpText('after', EXAMPLES)
    .action(async (options: ManifestOptions & { output: OutputFormat }) => {
      const run = await dryRun(options, await readManifestInput(options, terminal));
      printResult(terminal, options.output, { data: run, table: () => dryRunText(run, terminal.colour) });
      finish(hasError(run.problems) ? EXIT_PROBLEM : EXIT_OK);
    });
}

async function dryRun(options: ManifestOptions, stdin: string | undefined): Promise<DryRun> {
  const { filename, node = [] } = options;
  const fleet = resolveFleetOptions(options);
  const { openDirectorySource } = await import('@weir/controller');
  const { randomSecret } = await import('../standalone/fleet-secret.ts');
  const source = await openDirectorySource({
    paths: filename,
    stdin,
    nodes: node,
    clock: systemClock,
    watched: false,
    fleetSecret: randomSecret(),
  });
  try {
    const snapshot = source.snapshot();
    const settings = fleetSettingsFor(snapshot.nodes, { ...fleet, secretAccess: { kind: 'cluster' } });
    const { validity } = certificateValidityFor(snapshot.secrets ?? [], systemClock.now());
    const { table, statuses, problems } = translate({ ...snapshot, settings, validity }, NO_ALLOCATIONS);
    return {
      table: tableToJson(table),
      statuses,
      problems,
      ignored: Object.fromEntries(source.ignoredKinds()),
      services: countServices({ ...snapshot, settings }, { table, statuses, problems }),
    };
  } finally {
    await source.close();
  }
}

function hasError(problems: readonly Problem[]): boolean {
  return problems.some((problem) => problem.severity === 'error');
}

/** The output of `weir translate -o json`. */
export interface DryRun {
  readonly table: ReturnType<typeof tableToJson>;
  readonly statuses: readonly ServiceStatus[];
  readonly problems: readonly Problem[];
  /** Number of objects of each kind that Weir does not read. */
  readonly ignored: Readonly<Record<string, number>>;
  /** Number of Services of the manifests by what Weir does with them. */
  readonly services: ServiceCounts;
}

export function dryRunText(run: DryRun, colour: boolean): string {
  const paint = colourizeFor(colour);
  const parts = [
    servicesText(run, paint),
    problemsText(run.problems, paint),
    `${ignoredText(run.ignored)}${serviceCountsText(run.services)}\n`,
  ];
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
        title: 'REASON',
        value: ({ accepted }) => paint(accepted.reason === 'Accepted' ? 'green' : 'red', accepted.reason),
      },
      {
        title: 'PORTS',
        value: ({ ports }) => ports.map(portText).join(',') || '-',
      },
      { title: 'NODES', value: ({ nodes }) => nodes.join(',') || '-' },
      { title: 'ENDPOINTS', value: (status) => String(ready(status.uid)), align: 'right' },
    ],
    statuses,
  );
}

function portText({ port, protocol, error }: ServiceStatus['ports'][number]): string {
  return `${port}/${protocol}${error === null ? '' : ` (${error.reason})`}`;
}

/** Returns the number of ready endpoints of each port. The table may store the endpoints of a port in several chunks. */
function endpointCounts(chunks: DryRun['table']['endpoints']): number[] {
  const ports = Map.groupBy(chunks, (chunk) => `${chunk.protocol}/${chunk.port}`);
  return [...ports.values()].map((ofPort) => ofPort.reduce((sum, chunk) => sum + chunk.endpoints.length, 0));
}

function ignoredText(ignored: DryRun['ignored']): string {
  const kinds = Object.entries(ignored).sort(([a], [b]) => (a < b ? -1 : 1));
  if (kinds.length === 0) return '';
  return `Ignored objects of kinds that Weir does not read: ${kinds.map(([kind, count]) => `${count} ${toSingleLine(kind)}`).join(', ')}\n`;
}
