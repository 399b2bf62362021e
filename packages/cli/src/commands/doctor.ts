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
  weir doctor                                    the cluster of the kubeconfig, and the Redis of WEIR_REDIS_URL
  weir doctor --redis rediss://:password@redis.weir-system:6379
  weir doctor -o json | jq '.items[] | select(.severity != "ok")'

It only reads. Beside a cluster's administrator, whoever may list nodes, services, servicecidrs, leases and tenantpolicies can
run it; a check that cannot be made says why. WEIR_LOAD_BALANCER_CLASS, WEIR_SERVICE_CIDRS and WEIR_NAMESPACE
are honoured, as the controller has them: in its container it checks that fleet with its rights.
Exit code 1 when a check found an error. Warnings do not count.`;

interface DoctorCommandOptions {
  readonly kubeconfig?: string;
  readonly redis?: string;
  readonly fleet?: string;
  readonly output: OutputFormat;
}

export function addDoctor(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('doctor')
    .description('checks a cluster, its Redis and its proxies, and says what is wrong and what to do')
    .option('--kubeconfig <file>', 'the way to the API server (default: as kubectl finds it)')
    .option('--redis <url>', 'the Redis of the fleet, in a form of WEIR_REDIS_URL, instead of it')
    .option('--fleet <name>', 'the name of the fleet (WEIR_FLEET; default weir)')
    .addOption(outputOption())
    .addHelpText('after', EXAMPLES)
    .action(async (options: DoctorCommandOptions) => {
      // Loaded here: commands that only ask a console need none of it, and begin at once.
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

/** One line of each finding (a message is as long as it must be, so nothing stands right of it), and how many there are of each. */
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
