import { eventually, freePort } from '@weir/testkit';
import type { Redis } from './redis.ts';
import { type RedisGroup, type RedisGroupOptions, redisLauncher, serverWithRole } from './redis-group.ts';

/** Three primaries, which is what an election needs; nearly all slots are in one, which has a replica. */
export async function startRedisCluster(
  options: RedisGroupOptions = {},
): Promise<RedisGroup & { readonly others: readonly Redis[] }> {
  const { password, certificateAuthority, downAfterMs = 1_000 } = options;
  const maker = redisLauncher(options);
  const start = async (): Promise<Redis> =>
    maker.start({
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
    if (first === undefined || second === undefined) throw new Error('not started');
    const [third, fourth] = others;
    const pair: readonly [Redis, Redis] = [first, second];
    const idOf = async (server: Redis): Promise<string> => {
      const [, id = ''] = /\r\n([0-9a-f]{40})/.exec(await maker.command(server, 'CLUSTER MYID')) ?? [];
      return id;
    };
    for (const [server, slots] of [
      [first, '0 16381'],
      [third, '16382 16382'],
      [fourth, '16383 16383'],
    ] as const) {
      if (server !== undefined) await maker.command(server, `CLUSTER ADDSLOTSRANGE ${slots}`);
    }
    for (const [nth, server] of [second, ...others].entries()) {
      await maker.command(server, `CLUSTER SET-CONFIG-EPOCH ${nth + 2}`);
      await maker.command(first, `CLUSTER MEET ${server.host} ${server.port} ${await busOf(server)}`);
    }
    const primaryId = await idOf(first);
    await eventually(async () => void (await maker.command(second, `CLUSTER REPLICATE ${primaryId}`)), {
      timeoutMs: 30_000,
    });
    const group = {
      url: `${certificateAuthority === undefined ? 'redis' : 'rediss'}-cluster://${[...others, ...pair].map(({ host, port }) => `${host}:${port}`).join(',')}`,
      pair,
      others,
      primary: () => serverWithRole(maker, pair, 'primary'),
      replica: () => serverWithRole(maker, pair, 'replica'),
      command: maker.command,
      async waitUntilHealthy() {
        await eventually(
          async () => {
            for (const server of [...pair, ...others]) {
              const info = await maker.command(server, 'CLUSTER INFO');
              const nodes = await maker.command(server, 'CLUSTER NODES');
              const isWhole = /cluster_state:ok/.test(info) && /cluster_known_nodes:4/.test(info);
              if (!isWhole || /fail|handshake|disconnected/.test(nodes)) throw new Error(`not whole: ${nodes}`);
            }
            const replica = await maker.command(await serverWithRole(maker, pair, 'replica'), 'INFO replication');
            if (!replica.includes('master_link_status:up')) throw new Error('the replica does not follow yet');
          },
          { timeoutMs: 60_000, intervalMs: 100 },
        );
      },
      close: () => maker.close(),
      [Symbol.asyncDispose]: () => maker.close(),
    };
    await group.waitUntilHealthy();
    return group;

    async function busOf(server: Redis): Promise<string> {
      const [, port = ''] =
        /cluster-port\r\n\$\d+\r\n(\d+)/.exec(await maker.command(server, 'CONFIG GET cluster-port')) ?? [];
      return port;
    }
  } catch (error) {
    await maker.close();
    throw error;
  }
}
