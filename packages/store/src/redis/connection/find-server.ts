import { errorMessage, formatHostPort, type HostPort, parseHostPort } from '@weir/runtime';
import { Redis } from 'ioredis';
import { StoreError } from '../../errors.ts';
import { redisOptionsFor } from './client-options.ts';
import { storeErrorFor } from './redis-errors.ts';
import type { RedisCredentials, RedisTarget } from './redis-target.ts';
import type { RedisTopology } from './redis-url.ts';

export interface ServerFinderOptions extends CommandSenderOptions {
  /** A key of ours: all are in one slot, and so in one server of a cluster. */
  readonly key: string;
}

/** Answers with the server that serves us now; rejects with `StoreError`. */
export function createServerFinder(
  target: RedisTarget,
  { key, ...options }: ServerFinderOptions,
): () => Promise<HostPort> {
  const sendToRedis = createCommandSender(target, target, options);
  const sendToSentinel = createCommandSender(target, target.sentinel, options);
  return () => findServer(target.topology, { key, sendToRedis, sendToSentinel });
}

interface CommandSenderOptions {
  /** The longest that one answer may take, the way to it included. */
  readonly timeoutMs: number;
  /** Aborted: nobody waits for the answers any more. */
  readonly signal: AbortSignal;
}

/** A connection for each question: what is asked so is asked seldom, and of servers that may be gone for good. */
function createCommandSender(
  { tls, ca }: RedisTarget,
  credentials: RedisCredentials,
  { timeoutMs, signal }: CommandSenderOptions,
): CommandSender {
  return async (at: HostPort, [command = '', ...args]) => {
    const find = async (): Promise<HostPort> => at;
    const way = { credentials, db: 0, tls, ca, findServer: find };
    const redis = new Redis({ ...redisOptionsFor(way, timeoutMs), retryStrategy: () => null });
    const end = (): void => redis.disconnect();
    const late = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    let lastError: unknown;
    redis.on('error', (error) => {
      lastError = error;
    });
    late.addEventListener('abort', end);
    try {
      late.throwIfAborted();
      await redis.connect();
      return await redis.call(command, ...args);
    } catch (thrown) {
      throw late.aborted ? new Error('Command timed out') : (lastError ?? thrown);
    } finally {
      late.removeEventListener('abort', end);
      end();
    }
  };
}

// Which server is the one that serves us now: asked anew for each connection, so that a failover needs no other care.

/** Sends one command to one server, and gives its answer or rejects with what was thrown. */
export type CommandSender = (at: HostPort, command: readonly string[]) => Promise<unknown>;

export interface FindServerOptions {
  /** A key of ours: all are in one slot, and so in one server of a cluster. */
  readonly key: string;
  readonly sendToRedis: CommandSender;
  readonly sendToSentinel: CommandSender;
}

/** Rejects with `StoreError`: REFUSED when nobody lets us ask, else AWAY. */
export async function findServer(
  place: RedisTopology,
  { key, sendToRedis, sendToSentinel }: FindServerOptions,
): Promise<HostPort> {
  switch (place.kind) {
    case 'single':
      return place.at;
    case 'sentinel':
      return findSentinelPrimary(place.sentinels, place.primary, sendToSentinel);
    case 'cluster':
      return findSlotOwner(key, place.seeds, sendToRedis);
  }
}

type SentinelReply =
  | { readonly kind: 'named'; readonly at: HostPort }
  | { readonly kind: 'unknown' }
  | { readonly kind: 'failed'; readonly error: StoreError };

/**
 * What more than half of the sentinels say. One alone may be cut off from the others, together with a primary that has been replaced: whoever
 * believes it writes where all is thrown away later.
 */
function findSentinelPrimary(sentinels: readonly HostPort[], primary: string, ask: CommandSender): Promise<HostPort> {
  const { promise, resolve, reject } = Promise.withResolvers<HostPort>();
  const votes = new Map<string, number>();
  const answers = sentinels.map(async (at): Promise<SentinelReply> => {
    const answer = await queryPrimary(at, primary, ask);
    if (answer.kind === 'named') {
      const name = formatHostPort(answer.at);
      const count = (votes.get(name) ?? 0) + 1;
      votes.set(name, count);
      if (count > sentinels.length / 2) resolve(answer.at);
    }
    return answer;
  });
  void Promise.all(answers).then((all) => reject(sentinelErrorFor(sentinels, primary, all)));
  return promise;
}

async function queryPrimary(at: HostPort, primary: string, ask: CommandSender): Promise<SentinelReply> {
  try {
    const answer = await ask(at, ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', primary]);
    if (!Array.isArray(answer)) return { kind: 'unknown' };
    return { kind: 'named', at: { host: String(answer[0]), port: Number(answer[1]) } };
  } catch (thrown) {
    return { kind: 'failed', error: storeErrorFor(thrown, formatHostPort(at), 'Sentinel') };
  }
}

function sentinelErrorFor(
  sentinels: readonly HostPort[],
  primary: string,
  answers: readonly SentinelReply[],
): StoreError {
  const failures = answers.flatMap((answer) => (answer.kind === 'failed' ? [answer.error] : []));
  const [failure] = failures;
  if (failure !== undefined && failures.length === answers.length && failures.every(isRefusal)) return failure;
  const said = answers.map((answer, nth) => {
    const at = formatHostPort(sentinels[nth] ?? { host: '', port: 0 });
    if (answer.kind === 'failed') return answer.error.message;
    return answer.kind === 'unknown' ? `${at} does not know it` : `${at} says ${formatHostPort(answer.at)}`;
  });
  if (answers.every(({ kind }) => kind === 'unknown')) {
    const where = sentinels.map(formatHostPort).join(',');
    const message = `the sentinels ${where} know no primary "${primary}"; check the name behind # in the Redis URL`;
    return new StoreError('REFUSED', message);
  }
  return new StoreError(
    'AWAY',
    `no server is called the primary "${primary}" by more than half of the sentinels of the Redis URL: ${said.join('; ')}`,
  );
}

/** The server of the cluster that answers for the key, as the first one that answers knows it. It is asked again once connected. */
async function findSlotOwner(key: string, seeds: readonly HostPort[], ask: CommandSender): Promise<HostPort> {
  const errors: StoreError[] = [];
  const asked = seeds.map(async (at) => {
    try {
      await ask(at, ['EXISTS', key]);
      return at;
    } catch (thrown) {
      const moved = parseMoved(thrown, at);
      if (moved !== undefined) return moved;
      const error = storeErrorFor(thrown, formatHostPort(at));
      errors.push(error);
      throw error;
    }
  });
  try {
    return await Promise.any(asked);
  } catch {
    const worth = errors.every(isRefusal) ? errors[0] : errors.find((error) => !isRefusal(error));
    throw worth ?? new StoreError('AWAY', 'no server of the cluster has answered');
  }
}

/** `MOVED 3999 10.0.0.2:6379`; without a host it is that of whoever says so. */
function parseMoved(thrown: unknown, from: HostPort): HostPort | undefined {
  const [, host, port] = /^MOVED \d+ (.*):(\d+)$/.exec(errorMessage(thrown)) ?? [];
  if (host === undefined || port === undefined) return undefined;
  const name = host === '' ? from.host : host;
  return parseHostPort(formatHostPort({ host: name, port: Number(port) }));
}

function isRefusal({ code }: StoreError): boolean {
  return code === 'REFUSED';
}
