import { monotonicMs } from '../measure/monotonic-clock.ts';
import type { RpcProcess } from '../processes/rpc.ts';
import type { CommandRun, CutoffFleet } from './cutoff-fleet.ts';
import type { CutoffScenarioName } from './options.ts';
import type { TargetClients } from './target-clients-process.ts';
import { TARGET_TENANT } from './topology.ts';

/** What a scenario stops before its rounds. */
export type Away = 'controller' | 'api-server' | 'redis';

export type CutoffScenario = {
  readonly away: readonly Away[];
  /** Cuts off the target. Resolves when the commands have ended. */
  cutOff(fleet: CutoffFleet, clients: RpcProcess<TargetClients>): Promise<CutOff>;
  lift(fleet: CutoffFleet): Promise<unknown>;
};

export type CutOff = {
  /** When the cut-off began for each proxy, by the index of the proxy. A proxy without a time is not measured. */
  readonly startedAt: readonly (number | undefined)[];
  /** The duration of the slowest command. */
  readonly commandMs: number;
};

export const TIMED_SCENARIOS: Readonly<Record<Exclude<CutoffScenarioName, 'restart'>, CutoffScenario>> = {
  suspend: throughConsole([]),
  kubectl: {
    away: [],
    async cutOff(fleet) {
      return forAllProxies(fleet, await fleet.kubectl('create', '-f', '-', { stdin: JSON.stringify(SUSPENSION) }));
    },
    lift: (fleet) => fleet.kubectl('delete', 'suspension', SUSPENSION.metadata.name),
  },
  'no-controller': throughConsole(['controller']),
  'no-api-server': throughConsole(['api-server']),
  'redis-only': throughConsole(['controller', 'api-server']),
  local: {
    away: ['controller', 'api-server', 'redis'],
    async cutOff(fleet) {
      // One command after the other, because each node of a real fleet has processors of its own.
      const runs: CommandRun[] = [];
      for (const node of fleet.nodes) runs.push(await fleet.weirOnNode(node, ...SUSPEND));
      return {
        startedAt: runs.map(({ startedAt }) => startedAt),
        commandMs: Math.max(...runs.map(({ startedAt, endedAt }) => endedAt - startedAt)),
      };
    },
    async lift(fleet) {
      for (const node of fleet.nodes) await fleet.weirOnNode(node, 'resume', TARGET_TENANT);
    },
  },
  'no-redis': {
    away: [],
    async cutOff(fleet, clients) {
      const last = fleet.nodes.length - 1;
      fleet.redisRelay.cut();
      const { startedAt, endedAt } = await fleet.weir(...SUSPEND);
      const others = fleet.nodes.map((_, index) => index).filter((index) => index !== last);
      const open = (await clients.call('readEnds', others, END_TIMEOUT_MS)).filter((each) => each.endedAt === null);
      if (open.length > 0) throw new Error(`${open.length} connections through proxies with Redis did not end`);
      await fleet.redisRelay.restore();
      const restoredAt = monotonicMs();
      return {
        startedAt: fleet.nodes.map((_, index) => (index === last ? restoredAt : undefined)),
        commandMs: endedAt - startedAt,
      };
    },
    lift: (fleet) => fleet.weir('resume', TARGET_TENANT),
  },
};

/** How long a scenario waits for the end of all connections. */
export const END_TIMEOUT_MS = 30_000;
export const SUSPEND: readonly string[] = ['suspend', TARGET_TENANT, '--message', 'Your traffic harms other tenants.'];

const SUSPENSION = {
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'Suspension',
  metadata: { name: 'bench' },
  spec: { target: { type: 'Tenant', tenant: TARGET_TENANT }, message: 'Your traffic harms other tenants.' },
} as const;

function throughConsole(away: readonly Away[]): CutoffScenario {
  return {
    away,
    cutOff: async (fleet) => forAllProxies(fleet, await fleet.weir(...SUSPEND)),
    lift: (fleet) => fleet.weir('resume', TARGET_TENANT),
  };
}

function forAllProxies({ nodes }: CutoffFleet, { startedAt, endedAt }: CommandRun): CutOff {
  return { startedAt: nodes.map(() => startedAt), commandMs: endedAt - startedAt };
}
