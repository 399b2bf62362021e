import { eventually } from '@weir/testkit';
import type { Redis } from './redis.ts';
import { type RedisGroup, type RedisGroupOptions, redisLauncher, serverWithRole } from './redis-group.ts';

const PRIMARY_NAME = 'weir';

/** Starts a primary, a replica, and three sentinels that promote the replica if the primary fails. */
export async function startRedisSentinel(
  options: RedisGroupOptions = {},
): Promise<RedisGroup & { readonly sentinels: readonly Redis[] }> {
  const { password, sentinelPassword, certificateAuthority } = options;
  const launcher = redisLauncher(options);
  try {
    const encrypted = certificateAuthority === undefined ? [] : ['tls-replication yes'];
    const auth = password === undefined ? [] : [`masterauth ${password}`];
    const settings = ['repl-diskless-sync-delay 0', ...encrypted, ...auth];
    const first = await launcher.start({ settings });
    const second = await launcher.start({ settings: [...settings, `replicaof ${first.host} ${first.port}`] });
    const pair: readonly [Redis, Redis] = [first, second];
    await eventually(async () => {
      const info = await launcher.command(second, 'INFO replication');
      if (!info.includes('master_link_status:up')) throw new Error('the replica is not connected to its primary');
    });
    const sentinels = await Promise.all(
      [1, 2, 3].map(() =>
        launcher.start({
          mode: 'sentinel',
          settings: [...encrypted, ...sentinelSettings(first, options)],
          ...(sentinelPassword === undefined ? {} : { password: sentinelPassword }),
        }),
      ),
    );
    // Shortens the default interval of 10 s between two checks of roles, because a test would wait that long for a restarted server.
    for (const sentinel of sentinels) {
      await launcher.command(sentinel, 'SENTINEL DEBUG INFO-PERIOD 500 PUBLISH-PERIOD 500', sentinelPassword);
    }
    const list = sentinels.map(({ host, port }) => `${host}:${port}`).join(',');
    const group = {
      url: `${certificateAuthority === undefined ? 'redis' : 'rediss'}-sentinel://${list}#${PRIMARY_NAME}`,
      pair,
      sentinels,
      primary: () => serverWithRole(launcher, pair, 'primary'),
      replica: () => serverWithRole(launcher, pair, 'replica'),
      command: launcher.command,
      async waitUntilHealthy() {
        await eventually(
          async () => {
            for (const sentinel of sentinels) {
              const sendCommand = (command: string): Promise<string> =>
                launcher.command(sentinel, command, sentinelPassword);
              await sendCommand(`SENTINEL CKQUORUM ${PRIMARY_NAME}`);
              const replicas = await sendCommand(`SENTINEL REPLICAS ${PRIMARY_NAME}`);
              if (!/\r\nmaster-link-status\r\n\$2\r\nok\r\n/.test(replicas) || /s_down|disconnected/.test(replicas)) {
                throw new Error('a sentinel sees no connected replica');
              }
              const primary = await sendCommand(`SENTINEL MASTER ${PRIMARY_NAME}`);
              if (/[so]_down|failover_in_progress/.test(primary))
                throw new Error('a sentinel considers the primary down');
            }
          },
          { timeoutMs: 60_000, intervalMs: 100 },
        );
      },
      close: () => launcher.close(),
      [Symbol.asyncDispose]: () => launcher.close(),
    };
    await group.waitUntilHealthy();
    return group;
  } catch (error) {
    await launcher.close();
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
