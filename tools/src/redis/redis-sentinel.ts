import { eventually } from '@weir/testkit';
import type { Redis } from './redis.ts';
import { type RedisGroup, type RedisGroupOptions, redisLauncher, serverWithRole } from './redis-group.ts';

const PRIMARY_NAME = 'weir';

/** A primary and a replica, and three sentinels that make one of the other. */
export async function startRedisSentinel(
  options: RedisGroupOptions = {},
): Promise<RedisGroup & { readonly sentinels: readonly Redis[] }> {
  const { password, sentinelPassword, certificateAuthority } = options;
  const maker = redisLauncher(options);
  try {
    const encrypted = certificateAuthority === undefined ? [] : ['tls-replication yes'];
    const auth = password === undefined ? [] : [`masterauth ${password}`];
    const settings = ['repl-diskless-sync-delay 0', ...encrypted, ...auth];
    const first = await maker.start({ settings });
    const second = await maker.start({ settings: [...settings, `replicaof ${first.host} ${first.port}`] });
    const pair: readonly [Redis, Redis] = [first, second];
    await eventually(async () => {
      const said = await maker.command(second, 'INFO replication');
      if (!said.includes('master_link_status:up')) throw new Error('the replica does not follow yet');
    });
    const sentinels = await Promise.all(
      [1, 2, 3].map(() =>
        maker.start({
          mode: 'sentinel',
          settings: [...encrypted, ...sentinelSettings(first, options)],
          ...(sentinelPassword === undefined ? {} : { password: sentinelPassword }),
        }),
      ),
    );
    // They look at roles every 10 s else, and a test waits for it each time that a server comes back.
    for (const sentinel of sentinels) {
      await maker.command(sentinel, 'SENTINEL DEBUG INFO-PERIOD 500 PUBLISH-PERIOD 500', sentinelPassword);
    }
    const list = sentinels.map(({ host, port }) => `${host}:${port}`).join(',');
    const group = {
      url: `${certificateAuthority === undefined ? 'redis' : 'rediss'}-sentinel://${list}#${PRIMARY_NAME}`,
      pair,
      sentinels,
      primary: () => serverWithRole(maker, pair, 'primary'),
      replica: () => serverWithRole(maker, pair, 'replica'),
      command: maker.command,
      async waitUntilHealthy() {
        await eventually(
          async () => {
            for (const sentinel of sentinels) {
              const says = (command: string): Promise<string> => maker.command(sentinel, command, sentinelPassword);
              await says(`SENTINEL CKQUORUM ${PRIMARY_NAME}`);
              const replicas = await says(`SENTINEL REPLICAS ${PRIMARY_NAME}`);
              if (!/\r\nmaster-link-status\r\n\$2\r\nok\r\n/.test(replicas) || /s_down|disconnected/.test(replicas)) {
                throw new Error('a sentinel knows no replica that follows');
              }
              const primary = await says(`SENTINEL MASTER ${PRIMARY_NAME}`);
              if (/[so]_down|failover_in_progress/.test(primary)) throw new Error('a sentinel misses the primary');
            }
          },
          { timeoutMs: 60_000, intervalMs: 100 },
        );
      },
      close: () => maker.close(),
      [Symbol.asyncDispose]: () => maker.close(),
    };
    await group.waitUntilHealthy();
    return group;
  } catch (error) {
    await maker.close();
    throw error;
  }
}

function sentinelSettings(
  first: Redis,
  { password, sentinelPassword, downAfterMs = 1_000 }: RedisGroupOptions,
): readonly string[] {
  return [
    `sentinel monitor ${PRIMARY_NAME} ${first.host} ${first.port} 2`,
    `sentinel down-after-milliseconds ${PRIMARY_NAME} ${downAfterMs}`,
    `sentinel failover-timeout ${PRIMARY_NAME} 2000`,
    ...(password === undefined ? [] : [`sentinel auth-pass ${PRIMARY_NAME} ${password}`]),
    ...(sentinelPassword === undefined ? [] : [`sentinel sentinel-pass ${sentinelPassword}`]),
  ];
}
