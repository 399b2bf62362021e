import { silentLogger } from '@weir/runtime';
import { type LeaseExchange, openRedisStore } from '@weir/store';
import { type Redis, sendRedisCommand, startRedis } from '@weir/tools';

/** The cost of the calls of one second for a real Redis. */
export type ReplayCost = {
  /** Commands that Redis executed, including those of the script that each call runs. */
  readonly redisCommands: number;
  /** Processor time of the script in seconds. */
  readonly redisScriptSeconds: number;
  /** Processor time of the whole Redis process in seconds, with sockets and protocol. */
  readonly redisProcessorSeconds: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  /** The memory of all leases and members in Redis. */
  readonly memoryBytes: number;
};

/** The calls of a fleet come at the same time, but over more connections. */
const CALLS_AT_ONCE = 100;

/** Sends calls to a new Redis: first `filling`, whose cost does not count, then `measured`. */
export async function replayExchanges(
  filling: readonly LeaseExchange[],
  measured: readonly LeaseExchange[],
): Promise<ReplayCost> {
  await using server = await startRedis();
  const store = await openRedisStore({ url: server.url, fleet: 'leases', log: silentLogger() });
  try {
    const empty = await statisticsOf(server);
    await sendAll(store.leases, filling);
    const before = await statisticsOf(server);
    await sendAll(store.leases, measured);
    const after = await statisticsOf(server);
    const increase = (name: keyof RedisStatistics): number => after[name] - before[name];
    return {
      redisCommands: increase('commands'),
      redisScriptSeconds: increase('scriptSeconds'),
      redisProcessorSeconds: increase('processorSeconds'),
      receivedBytes: increase('receivedBytes'),
      sentBytes: increase('sentBytes'),
      memoryBytes: after.memoryBytes - empty.memoryBytes,
    };
  } finally {
    await store.close();
  }
}

async function sendAll(
  leases: { exchange(exchange: LeaseExchange): Promise<unknown> },
  exchanges: readonly LeaseExchange[],
): Promise<void> {
  for (let from = 0; from < exchanges.length; from += CALLS_AT_ONCE)
    await Promise.all(exchanges.slice(from, from + CALLS_AT_ONCE).map((exchange) => leases.exchange(exchange)));
}

interface RedisStatistics {
  readonly commands: number;
  readonly scriptSeconds: number;
  readonly processorSeconds: number;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly memoryBytes: number;
}

async function statisticsOf(server: Redis): Promise<RedisStatistics> {
  const text = await sendRedisCommand(server, 'INFO all');
  const figure = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(text)?.[1] ?? 0);
  const [, scriptMicroseconds = '0'] = /^cmdstat_evalsha:calls=\d+,usec=(\d+)/m.exec(text) ?? [];
  const calls = [...text.matchAll(/^cmdstat_(?!info|ping)[^:]+:calls=(\d+)/gm)].map(([, count]) => Number(count));
  return {
    commands: calls.reduce((sum, count) => sum + count, 0),
    scriptSeconds: Number(scriptMicroseconds) / 1e6,
    processorSeconds: figure('used_cpu_sys') + figure('used_cpu_user'),
    receivedBytes: figure('total_net_input_bytes'),
    sentBytes: figure('total_net_output_bytes'),
    memoryBytes: figure('used_memory'),
  };
}
