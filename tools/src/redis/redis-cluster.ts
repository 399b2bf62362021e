import { eventually, freePort } from '@weir/testkit';
import type { Redis } from './redis.ts';
import { type RedisGroup, type RedisGroupOptions, redisLauncher, serverWithRole } from './redis-group.ts';

export interface RedisCluster extends RedisGroup {
  /** The primaries beside the pair. */
  readonly others: readonly Redis[];
  /**
   * Moves the slot of a key with all of its keys from one primary to another, as `redis-cli --cluster reshard` does: a few keys at a time,
   * while clients use both servers. Calls `afterStep` after each step.
   */
  moveSlot(key: string, move: SlotMove): Promise<void>;
}

export interface SlotMove {
  readonly from: Redis;
  readonly to: Redis;
  readonly afterStep?: () => Promise<void>;
}

/** The number of keys that one MIGRATE moves; redis-cli uses 10 by default. */
const KEYS_PER_STEP = 10;

/** Starts a Redis Cluster with three primaries, the minimum for an election. One primary has a replica and nearly all slots. */
export async function startRedisCluster(options: RedisGroupOptions = {}): Promise<RedisCluster> {
  const { password, certificateAuthority, downAfterMs = 1_000 } = options;
  const launcher = redisLauncher(options);
  const start = async (): Promise<Redis> =>
    launcher.start({
      settings: [
        'cluster-enabled yes',
        `cluster-port ${await freePort()}`,
        `cluster-node-timeout ${downAfterMs}`,
        'cluster-replica-validity-factor 0',
        'repl-diskless-sync-delay 0',
        ...(certificateAuthority === undefined ? [] : ['tls-cluster yes', 'tls-replication yes']),
        ...(password === undefined ? [] : [`masterauth ${password}`]),
      ],
    });
  try {
    const [first, second, ...others] = await Promise.all([start(), start(), start(), start()]);
    if (first === undefined || second === undefined) throw new Error('internal error: a server did not start');
    const [third, fourth] = others;
    const pair: readonly [Redis, Redis] = [first, second];
    const idOf = async (server: Redis): Promise<string> => {
      const [, id = ''] = /\r\n([0-9a-f]{40})/.exec(await launcher.command(server, 'CLUSTER MYID')) ?? [];
      return id;
    };
    for (const [server, slots] of [
      [first, '0 16381'],
      [third, '16382 16382'],
      [fourth, '16383 16383'],
    ] as const) {
      if (server !== undefined) await launcher.command(server, `CLUSTER ADDSLOTSRANGE ${slots}`);
    }
    for (const [nth, server] of [second, ...others].entries()) {
      await launcher.command(server, `CLUSTER SET-CONFIG-EPOCH ${nth + 2}`);
      await launcher.command(first, `CLUSTER MEET ${server.host} ${server.port} ${await busPort(server)}`);
    }
    const primaryId = await idOf(first);
    await eventually(async () => void (await launcher.command(second, `CLUSTER REPLICATE ${primaryId}`)), {
      timeoutMs: 30_000,
    });
    const group: RedisCluster = {
      url: `${certificateAuthority === undefined ? 'redis' : 'rediss'}-cluster://${[...others, ...pair].map(({ host, port }) => `${host}:${port}`).join(',')}`,
      pair,
      others,
      primary: () => serverWithRole(launcher, pair, 'primary'),
      replica: () => serverWithRole(launcher, pair, 'replica'),
      command: launcher.command,
      async waitUntilHealthy() {
        await eventually(
          async () => {
            for (const server of [...pair, ...others]) {
              const info = await launcher.command(server, 'CLUSTER INFO');
              const nodes = await launcher.command(server, 'CLUSTER NODES');
              const isComplete = /cluster_state:ok/.test(info) && /cluster_known_nodes:4/.test(info);
              if (!isComplete || /fail|handshake|disconnected/.test(nodes))
                throw new Error(`the cluster is not complete: ${nodes}`);
            }
            const replica = await launcher.command(await serverWithRole(launcher, pair, 'replica'), 'INFO replication');
            if (!replica.includes('master_link_status:up'))
              throw new Error('the replica is not connected to its primary');
          },
          { timeoutMs: 60_000, intervalMs: 100 },
        );
      },
      async moveSlot(key, { from, to, afterStep }) {
        const slot = Number((await launcher.command(from, `CLUSTER KEYSLOT ${key}`)).slice(1));
        const [idFrom, idTo] = [await idOf(from), await idOf(to)];
        await launcher.command(to, `CLUSTER SETSLOT ${slot} IMPORTING ${idFrom}`);
        await launcher.command(from, `CLUSTER SETSLOT ${slot} MIGRATING ${idTo}`);
        for (;;) {
          const reply = await launcher.command(from, `CLUSTER GETKEYSINSLOT ${slot} ${KEYS_PER_STEP}`);
          const keys = reply.split('\r\n').filter((line) => line !== '' && !/^[*$]\d+$/.test(line));
          if (keys.length === 0) break;
          const credentials = password === undefined ? '' : `AUTH ${password} `;
          await launcher.command(from, `MIGRATE ${to.host} ${to.port} "" 0 5000 ${credentials}KEYS ${keys.join(' ')}`);
          await afterStep?.();
        }
        for (const server of [to, from]) await launcher.command(server, `CLUSTER SETSLOT ${slot} NODE ${idTo}`);
      },
      close: () => launcher.close(),
      [Symbol.asyncDispose]: () => launcher.close(),
    };
    await group.waitUntilHealthy();
    return group;

    async function busPort(server: Redis): Promise<string> {
      const [, port = ''] =
        /cluster-port\r\n\$\d+\r\n(\d+)/.exec(await launcher.command(server, 'CONFIG GET cluster-port')) ?? [];
      return port;
    }
  } catch (error) {
    await launcher.close();
    throw error;
  }
}
