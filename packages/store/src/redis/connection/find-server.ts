// Finds the Redis server that currently serves the fleet. Each reconnect looks the server up again, because a failover may replace it.
import { errorMessage, formatHostPort, type HostPort, parseHostPort } from '@weir/runtime';
import { StoreError } from '../../errors.ts';
import { createShortLivedClient, redisOptionsFor } from './client-options.ts';
import { storeErrorFor } from './redis-errors.ts';
import type { RedisCredentials, RedisTarget } from './redis-target.ts';
import type { RedisTopology } from './redis-url.ts';

export interface ServerFinderOptions extends CommandSenderOptions {
  /** Any key of the fleet. All keys of a fleet are in one slot, and therefore on one server of a cluster. */
  readonly slotKey: string;
}

/** Creates a function that returns the address of the server that currently serves the fleet, or rejects with `StoreError`. */
export function createServerFinder(
  target: RedisTarget,
  { slotKey, ...options }: ServerFinderOptions,
): () => Promise<HostPort> {
  const sendToRedis = createCommandSender(target, target, options);
  const sendToSentinel = createCommandSender(target, target.sentinel, options);
  return () => findServer(target.topology, { slotKey, sendToRedis, sendToSentinel });
}

interface CommandSenderOptions {
  /** The timeout of a command, including the time to connect. */
  readonly timeoutMs: number;
  /** Ends all pending commands. */
  readonly signal: AbortSignal;
}

/** Returns a sender that opens a connection for each command, because commands are rare and a server may have been removed for good. */
function createCommandSender(
  { tls, ca }: RedisTarget,
  credentials: RedisCredentials,
  { timeoutMs, signal }: CommandSenderOptions,
): CommandSender {
  return async (server: HostPort, [command = '', ...args]) => {
    const options = { credentials, db: 0, tls, ca, findServer: async () => server };
    const { redis, causeOf } = createShortLivedClient(redisOptionsFor(options, timeoutMs));
    const end = (): void => redis.disconnect();
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    deadline.addEventListener('abort', end);
    try {
      deadline.throwIfAborted();
      await redis.connect();
      return await redis.call(command, ...args);
    } catch (thrown) {
      throw deadline.aborted ? new Error('Command timed out') : causeOf(thrown);
    } finally {
      deadline.removeEventListener('abort', end);
      end();
    }
  };
}

/** Sends one command to one server. Resolves with the reply. Rejects with an error that is not yet mapped to a `StoreError`. */
export type CommandSender = (server: HostPort, command: readonly string[]) => Promise<unknown>;

export interface FindServerOptions {
  /** Any key of the fleet. All keys of a fleet are in one slot, and therefore on one server of a cluster. */
  readonly slotKey: string;
  readonly sendToRedis: CommandSender;
  readonly sendToSentinel: CommandSender;
}

/**
 * Returns the server that currently serves the fleet. Rejects with `StoreError` REFUSED if all servers refuse the client or no sentinel
 * knows the primary; otherwise with AWAY.
 */
export async function findServer(
  topology: RedisTopology,
  { slotKey, sendToRedis, sendToSentinel }: FindServerOptions,
): Promise<HostPort> {
  switch (topology.kind) {
    case 'single':
      return topology.at;
    case 'sentinel':
      return findSentinelPrimary(topology.sentinels, topology.primary, sendToSentinel);
    case 'cluster':
      return findSlotOwner(slotKey, topology.seeds, sendToRedis);
  }
}

type SentinelReply =
  | { readonly kind: 'found'; readonly server: HostPort }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly error: StoreError };

/**
 * Returns the primary that more than half of the sentinels name. A minority is not sufficient: a network partition may separate a minority
 * and a replaced primary from the other sentinels. Writes to the replaced primary are lost when the partition ends.
 */
function findSentinelPrimary(sentinels: readonly HostPort[], primary: string, send: CommandSender): Promise<HostPort> {
  const { promise, resolve, reject } = Promise.withResolvers<HostPort>();
  const votes = new Map<string, number>();
  const replies = sentinels.map(async (sentinel): Promise<SentinelReply> => {
    const reply = await queryPrimary(sentinel, primary, send);
    if (reply.kind === 'found') {
      const address = formatHostPort(reply.server);
      const count = (votes.get(address) ?? 0) + 1;
      votes.set(address, count);
      if (count > sentinels.length / 2) resolve(reply.server);
    }
    return reply;
  });
  void Promise.all(replies).then((all) => reject(sentinelErrorFor(sentinels, primary, all)));
  return promise;
}

async function queryPrimary(sentinel: HostPort, primary: string, send: CommandSender): Promise<SentinelReply> {
  try {
    const reply = await send(sentinel, ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', primary]);
    if (!Array.isArray(reply)) return { kind: 'unknown' };
    return { kind: 'found', server: { host: String(reply[0]), port: Number(reply[1]) } };
  } catch (thrown) {
    return { kind: 'failed', error: storeErrorFor(thrown, formatHostPort(sentinel), 'Sentinel') };
  }
}

function sentinelErrorFor(
  sentinels: readonly HostPort[],
  primary: string,
  replies: readonly SentinelReply[],
): StoreError {
  const failures = replies.flatMap((reply) => (reply.kind === 'failed' ? [reply.error] : []));
  const [failure] = failures;
  if (failure !== undefined && failures.length === replies.length && failures.every(isRefusal)) return failure;
  const descriptions = replies.map((reply, index) => {
    const sentinel = formatHostPort(sentinels[index] ?? { host: '', port: 0 });
    if (reply.kind === 'failed') return reply.error.message;
    return reply.kind === 'unknown'
      ? `${sentinel} does not know this primary`
      : `${sentinel} names ${formatHostPort(reply.server)}`;
  });
  if (replies.every(({ kind }) => kind === 'unknown')) {
    const where = sentinels.map(formatHostPort).join(',');
    const message = `the sentinels ${where} do not know the primary "${primary}"; check the name after # in the Redis URL`;
    return new StoreError('REFUSED', message);
  }
  return new StoreError(
    'AWAY',
    `no majority of the sentinels in the Redis URL names one server as the primary "${primary}": ${descriptions.join('; ')}`,
  );
}

/**
 * Returns the server that owns the slot of `slotKey` according to the first seed that replies. After connecting, `RedisConnection` checks
 * that the server owns the slot.
 */
async function findSlotOwner(slotKey: string, seeds: readonly HostPort[], send: CommandSender): Promise<HostPort> {
  const errors: StoreError[] = [];
  const owners = seeds.map(async (seed) => {
    try {
      await send(seed, ['EXISTS', slotKey]);
      return seed;
    } catch (thrown) {
      const moved = parseMoved(thrown, seed);
      if (moved !== undefined) return moved;
      const error = storeErrorFor(thrown, formatHostPort(seed));
      errors.push(error);
      throw error;
    }
  });
  try {
    return await Promise.any(owners);
  } catch {
    const error = errors.every(isRefusal) ? errors[0] : errors.find((each) => !isRefusal(each));
    throw error ?? new StoreError('AWAY', 'no server of the cluster has responded');
  }
}

/** Parses an error such as `MOVED 3999 10.0.0.2:6379`. An empty host means the host of `from`, the server that sent the error. */
function parseMoved(thrown: unknown, from: HostPort): HostPort | undefined {
  const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(errorMessage(thrown)) ?? [];
  if (host === undefined || port === undefined) return undefined;
  const name = host === '' ? from.host : host;
  return parseHostPort(formatHostPort({ host: name, port: Number(port) }));
}

function isRefusal({ code }: StoreError): boolean {
  return code === 'REFUSED';
}
