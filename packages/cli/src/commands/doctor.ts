import type { Command } from 'commander';
import type { CommandContext } from '../command-context.ts';
import { diagnose } from '../doctor/diagnose.ts';
import { FINE, PROBLEM } from '../exit-code.ts';
import { findingsText } from '../output/findings-text.ts';
import { type Format, outputOption, print } from '../output/format.ts';
import type { Terminal } from '../terminal.ts';
import { version } from '../version.ts';

const EXAMPLES = `
Examples:
  weir doctor                                    the cluster of the kubeconfig, and the Redis of WEIR_REDIS_URL
  weir doctor --redis rediss://:password@redis.weir-system:6379
  weir doctor -o json | jq '.items[] | select(.severity != "ok")'

It only reads. Beside a cluster's administrator, whoever may list nodes, services, servicecidrs, leases and tenantpolicies can
run it; a check that cannot be made says why. WEIR_LOAD_BALANCER_CLASS and WEIR_SERVICE_CIDRS are honoured, as
the controller has them.
Exit code 1 when a check found an error. Warnings do not count.`;

interface Options {
  readonly kubeconfig?: string;
  readonly redis?: string;
  readonly fleet?: string;
  readonly output: Format;
}

export function addDoctor(program: Command, { terminal, finish }: CommandContext): void {
  program
    .command('doctor')
    .description('checks a cluster, its Redis and its proxies, and says what is wrong and what to do')
    .option('--kubeconfig <file>', 'the way to the API server (default: as kubectl finds it)')
    .option('--redis <url>', 'the Redis of the fleet, as redis://[USER:PASSWORD@]HOST[:PORT] (WEIR_REDIS_URL)')
    .option('--fleet <name>', 'the name of the fleet (WEIR_FLEET; default weir)')
    .addOption(outputOption())
    .addHelpText('after', EXAMPLES)
    .action(async (options: Options) => {
      // Loaded here: commands that only ask a console need none of it, and begin at once.
      const { collectFacts } = await import('../doctor/collect/collect-facts.ts');
      const items = diagnose(await collectFacts(whomFor(options, terminal)));
      print(terminal, options.output, { data: { items }, table: () => findingsText(items, terminal.colour) });
      finish(items.some(({ severity }) => severity === 'error') ? PROBLEM : FINE);
    });
}

function whomFor({ kubeconfig, redis, fleet }: Options, { env, signal }: Terminal) {
  return {
    kubeconfig,
    redis: redis ?? (env.WEIR_REDIS_URL || undefined),
    fleet: fleet ?? (env.WEIR_FLEET || 'weir'),
    loadBalancerClass: env.WEIR_LOAD_BALANCER_CLASS || 'weir.dev/weir',
    serviceCidrs: env.WEIR_SERVICE_CIDRS || undefined,
    version: version(),
    signal,
  };
}
