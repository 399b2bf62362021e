// Program `target-clients-process.ts`: the clients of the target. The parent process calls `TargetClients` by RPC.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '@weir/testkit';
import { serveRpc } from '../processes/rpc.ts';
import { openConnections, type TargetConnection } from './target-connections.ts';
import { CONNECTION_KINDS, type ConnectionKind, MESSAGE_INTERVAL_MS, TARGET_PORTS } from './topology.ts';

/** What a client noticed of one connection. Times are of the machine's monotonic clock. */
export type ConnectionReading = {
  readonly kind: ConnectionKind;
  /** The index of the proxy. */
  readonly proxy: number;
  readonly lastByteAt: number;
  /** Null if the connection did not end. */
  readonly endedAt: number | null;
};

export type Attempts = { readonly attempts: number; readonly served: number };

export type TargetClients = {
  /** Resolves when every proxy serves every kind of connection. */
  awaitServed(hosts: readonly string[]): Promise<void>;
  /** Resolves when every proxy refuses TCP connections. */
  awaitRefused(hosts: readonly string[]): Promise<void>;
  /** Opens connections through each proxy. */
  open(hosts: readonly string[], counts: Readonly<Record<ConnectionKind, number>>): Promise<void>;
  /** Waits for the end of all connections through these proxies, at most `timeoutMs`, and then for late messages. */
  readEnds(proxies: readonly number[], timeoutMs: number): Promise<readonly ConnectionReading[]>;
  close(): void;
  /** Connects to every proxy again and again, until `stopAttempts`. */
  startAttempts(hosts: readonly string[]): void;
  /** Returns how many attempts were made, and how many of them got a byte from the endpoint. */
  stopAttempts(): Promise<Attempts>;
};

const POLL_INTERVAL_MS = 50;
const EVENTUALLY = { timeoutMs: 60_000, intervalMs: 100 };
const ATTEMPT_INTERVAL_MS = 50;
const ATTEMPT_TIMEOUT_MS = 500;

let connectionsByProxy: (readonly TargetConnection[])[] = [];
let isAttempting = false;
let attempts: Promise<Attempts>[] = [];

serveRpc<TargetClients>({
  async awaitServed(hosts) {
    await Promise.all(hosts.flatMap((host) => CONNECTION_KINDS.map((kind) => awaitServed(kind, host))));
  },
  async awaitRefused(hosts) {
    const assertRefused = async (host: string): Promise<void> => {
      if (await isServed(host)) throw new Error(`${host} serves the target`);
    };
    await Promise.all(hosts.map((host) => eventually(() => assertRefused(host), EVENTUALLY)));
  },
  async open(hosts, counts) {
    connectionsByProxy = await Promise.all(hosts.map((host) => openThrough(host, counts)));
  },
  async readEnds(proxies, timeoutMs) {
    const observed = proxies.flatMap((proxy) =>
      (connectionsByProxy[proxy] ?? []).map((connection) => ({ proxy, connection })),
    );
    const deadline = performance.now() + timeoutMs;
    while (observed.some(({ connection }) => connection.endedAt === undefined) && performance.now() < deadline)
      await sleep(POLL_INTERVAL_MS);
    await sleep(2 * MESSAGE_INTERVAL_MS);
    return observed.map(({ proxy, connection: { kind, lastByteAt, endedAt = null } }) => ({
      ...{ kind, proxy, lastByteAt, endedAt },
    }));
  },
  close() {
    for (const connection of connectionsByProxy.flat()) connection.close();
    connectionsByProxy = [];
  },
  startAttempts(hosts) {
    isAttempting = true;
    attempts = hosts.map(attemptUntilStopped);
  },
  async stopAttempts() {
    isAttempting = false;
    const made = await Promise.all(attempts);
    const sum = (pick: (each: Attempts) => number): number => made.reduce((total, each) => total + pick(each), 0);
    return { attempts: sum((each) => each.attempts), served: sum((each) => each.served) };
  },
});

async function awaitServed(kind: ConnectionKind, host: string): Promise<void> {
  await eventually(async () => {
    for (const connection of await openConnections(kind, host, 1)) connection.close();
  }, EVENTUALLY);
}

async function openThrough(
  host: string,
  counts: Readonly<Record<ConnectionKind, number>>,
): Promise<readonly TargetConnection[]> {
  const byKind: (readonly TargetConnection[])[] = [];
  for (const kind of CONNECTION_KINDS) byKind.push(await openConnections(kind, host, counts[kind]));
  return byKind.flat();
}

async function attemptUntilStopped(host: string): Promise<Attempts> {
  const result = { attempts: 0, served: 0 };
  while (isAttempting) {
    result.attempts++;
    if (await isServed(host)) result.served++;
    await sleep(ATTEMPT_INTERVAL_MS);
  }
  return result;
}

/** Whether a new TCP connection gets a byte. The endpoint sends at once. */
function isServed(host: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port: TARGET_PORTS.tcp });
  const finish = (served: boolean): void => {
    socket.destroy();
    resolve(served);
  };
  socket.setTimeout(ATTEMPT_TIMEOUT_MS, () => finish(false));
  socket.once('data', () => finish(true));
  socket.once('error', () => finish(false));
  socket.once('close', () => finish(false));
  return promise;
}
