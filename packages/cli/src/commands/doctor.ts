import type { RedisAccess } from '@weir/store';
import type { Command } from 'commander';
import { type CommandContext, EXIT_OK, EXIT_PROBLEM } from '../command-context.ts';
import { diagnose } from '../doctor/diagnose.ts';
import { CHECK_CODES, type Finding, type Severity } from '../doctor/finding.ts';
import { type Colourize, colourizeFor, toSingleLine } from '../output/ansi.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import type { Terminal } from '../terminal.ts';
import { version } from '../version.ts';

const EXAMPLES = `
Examples:
  weir doctor                                    check the cluster of the kubeconfig and the Redis of WEIR_REDIS_URL
  weir doctor --redis rediss://:password@redis.weir-system:6379
  weir doctor -o json | jq '.items[] | select(.severity != "ok")'

The command changes nothing. It needs the right to list nodes, services, servicecidrs, leases and tenantpolicies;
a check that cannot run says why. The command reads WEIR_LOAD_BALANCER_CLASS, WEIR_SERVICE_CIDRS and WEIR_NAMESPACE
as the controller does, so in the container of a controller the command checks the fleet of this controller.
The exit code is 1 if a check found an error, or if neither an API server nor a proxy could be asked. Warnings do not
count.`;

interface DoctorCommandOptions {
  readonly kubeconfig?: string;
  readonly redis?: string;
  readonly fleet?: string;
  readonly output: OutputFormat;
}

export function addDoctor(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('doctor')
    .description('check a cluster, its Redis and its proxies, and print what is wrong and what to do')
    .option('--kubeconfig <file>', 'kubeconfig of the cluster (default: the kubeconfig that kubectl uses)')
    .option('--redis <url>', 'Redis of the fleet, in any form that WEIR_REDIS_URL accepts (default: WEIR_REDIS_URL)')
    .option('--fleet <name>', 'name of the fleet (default: WEIR_FLEET, else weir)')
    .addOption(outputOption())
    .addHelpText('after', EXAMPLES)
    .action(async (options: DoctorCommandOptions) => {
      // Loaded on demand, so that commands that only send requests to a console start fast.
      const { collectFacts } = await import('../doctor/collect-facts.ts');
      const { redisAccessFrom } = await import('@weir/store');
      const redis = redisAccessFrom(terminal.env, options.redis);
      const items = diagnose(await collectFacts(collectOptionsFor(options, terminal, redis)));
      printResult(terminal, options.output, { data: { items }, table: () => findingsText(items, terminal.colour) });
      finish(items.some(({ severity }) => severity === 'error') ? EXIT_PROBLEM : EXIT_OK);
    });
}

function collectOptionsFor(
  { kubeconfig, fleet }: DoctorCommandOptions,
  { env, signal }: Terminal,
  redis: RedisAccess | undefined,
) {
  return {
    kubeconfig,
    redis,
    fleet: fleet ?? (env.WEIR_FLEET || 'weir'),
    loadBalancerClass: env.WEIR_LOAD_BALANCER_CLASS || 'weir.dev/weir',
    serviceCidrs: env.WEIR_SERVICE_CIDRS || undefined,
    namespace: env.WEIR_NAMESPACE || undefined,
    version: version(),
    signal,
  };
}

const SEVERITY_STYLES = { ok: 'green', warning: 'yellow', error: 'red' } as const;
const SEVERITY_WIDTH = 'warning'.length;
const CODE_WIDTH = Math.max(...CHECK_CODES.map((code) => code.length));

/** Returns one line per finding, then the number of findings per severity. The message is the last column, because its length varies. */
export function findingsText(findings: readonly Finding[], colour: boolean): string {
  const paint = colourizeFor(colour);
  return `${findings.map((finding) => `${findingLine(finding, paint)}\n`).join('')}\n${findingsSummary(findings)}\n`;
}

function findingLine({ code, severity, subject, message }: Finding, paint: Colourize): string {
  const word = paint(SEVERITY_STYLES[severity], severity) + ' '.repeat(SEVERITY_WIDTH - severity.length);
  return `${word}  ${code.padEnd(CODE_WIDTH)}  ${paint('bold', toSingleLine(subject))}: ${toSingleLine(message)}`;
}

function findingsSummary(findings: readonly Finding[]): string {
  const count = (severity: Severity): number => findings.filter((finding) => finding.severity === severity).length;
  return `${findings.length} checks: ${count('ok')} ok, ${count('warning')} warning, ${count('error')} error`;
}
