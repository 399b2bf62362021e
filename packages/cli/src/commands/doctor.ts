import type { RedisAccess } from '@weir/store';
import type { Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { diagnose } from '../doctor/diagnose.ts';
import { EXIT_OK, EXIT_PROBLEM } from '../exit-code.ts';
import { findingsText } from '../output/findings-text.ts';
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
      const { collectFacts } = await import('../doctor/collect/collect-facts.ts');
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
