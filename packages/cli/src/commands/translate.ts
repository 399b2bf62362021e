import { certificateValidityFor, NO_ALLOCATIONS, type Problem, tableToJson, translate } from '@weir/model';
import { systemClock } from '@weir/runtime';
import type { Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { EXIT_OK, EXIT_PROBLEM } from '../exit-code.ts';
import { type DryRun, dryRunText } from '../output/dry-run.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { fleetSettingsFor, resolveFleetOptions } from '../standalone/directory-settings.ts';
import { addManifestOptions, type ManifestOptions } from './manifest-options.ts';

const EXAMPLES = `
Examples:
  weir translate -f manifests/                   what Weir would do with them, and every problem
  weir translate -f manifests/ --classless       also Services that name no loadBalancerClass
  weir translate -f . --node edge=192.0.2.10 -o json

Exit code 1 when a problem of severity error was found. Warnings do not count.`;

export function addTranslate(program: Command, { terminal, finish }: CommandContext): void {
  addManifestOptions(program.command('translate'))
    .description('dry run: the routing table that manifests become, and every problem')
    .addOption(outputOption())
    .addHelpText('after', EXAMPLES)
    .action(async (options: ManifestOptions & { output: OutputFormat }) => {
      const run = await dryRun(options);
      printResult(terminal, options.output, { data: run, table: () => dryRunText(run, terminal.colour) });
      finish(hasError(run.problems) ? EXIT_PROBLEM : EXIT_OK);
    });
}

async function dryRun(options: ManifestOptions): Promise<DryRun> {
  const { filename, node = [] } = options;
  const fleet = resolveFleetOptions(options);
  const { openDirectorySource } = await import('@weir/controller');
  const { randomSecret } = await import('../standalone/fleet-secret.ts');
  const once = { clock: systemClock, watched: false, fleetSecret: randomSecret() };
  const source = await openDirectorySource({ paths: filename, nodes: node, ...once });
  try {
    const snapshot = source.snapshot();
    const settings = fleetSettingsFor(snapshot.nodes, { ...fleet, secretAccess: { kind: 'cluster' } });
    const { validity } = certificateValidityFor(snapshot.secrets ?? [], systemClock.now());
    const { table, statuses, problems } = translate({ ...snapshot, settings, validity }, NO_ALLOCATIONS);
    return { table: tableToJson(table), statuses, problems, ignored: Object.fromEntries(source.ignoredKinds()) };
  } finally {
    await source.close();
  }
}

function hasError(problems: readonly Problem[]): boolean {
  return problems.some((problem) => problem.severity === 'error');
}
