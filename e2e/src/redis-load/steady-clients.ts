// Clients that use a fleet continuously while Redis fails. They count what they send, receive and open, so that the ledger can be compared
// with their counts.
import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';
import { connectClient, type TestClient } from '@weir/testkit';
import type { Traffic } from './redis-fleet.ts';

/** Leaves processor time to the tested processes. */
const PAUSE_MS = 40;

interface Target {
  readonly addresses: readonly string[];
  readonly port: number;
}

/** Repeats operations until it is closed. While it is held, no operation runs. */
class Repetition implements AsyncDisposable {
  readonly failures: string[] = [];
  completed = 0;
  #isClosed = false;
  #held: PromiseWithResolvers<void> | undefined;
  #running = 0;
  #idle: PromiseWithResolvers<void> | undefined;
  readonly #ended: Promise<void>[] = [];

  start(operation: () => Promise<void>): void {
    this.#ended.push(this.#repeat(operation));
  }

  async #repeat(operation: () => Promise<void>): Promise<void> {
    while (!this.#isClosed) {
      await this.#held?.promise;
      if (this.#isClosed) return;
      this.#running += 1;
      try {
        await operation();
        this.completed += 1;
      } catch (error) {
        this.failures.push(error instanceof Error ? error.message : String(error));
      }
      this.#running -= 1;
      if (this.#running === 0) this.#idle?.resolve();
      await pause(PAUSE_MS);
    }
  }

  /** Runs `work` while no operation runs. */
  async hold(work: () => Promise<void>): Promise<void> {
    this.#held = Promise.withResolvers();
    this.#idle = Promise.withResolvers();
    if (this.#running > 0) await this.#idle.promise;
    await work();
    this.#held.resolve();
    this.#held = undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#held?.resolve();
    await Promise.all(this.#ended);
  }
}

const REQUEST = 'GET /file HTTP/1.1\r\nHost: shop.example\r\n\r\n';

/** Clients whose operations must all succeed: short connections, kept connections, and kept connections with HTTP requests. */
export class CountingClients extends Repetition {
  readonly #ended = { receivedBytes: 0, sentBytes: 0, connections: 0 };
  readonly #open = new Set<TestClient>();

  constructor(targets: { readonly tcp: Target; readonly http: Target; readonly bodyBytes: number }) {
    super();
    for (const host of targets.tcp.addresses) {
      this.start(() => this.#useShortConnection(host, targets.tcp.port));
      this.#startKept(host, targets.tcp.port, (client) => exchange(client, 'ping', 4));
    }
    for (const host of targets.http.addresses) {
      this.#startKept(host, targets.http.port, async (client) => {
        await client.send(REQUEST);
        const head = await client.take(/\r\n\r\n/);
        assert.match(String(head), /^HTTP\/1\.1 200 /);
        await client.take(targets.bodyBytes);
      });
    }
  }

  get traffic(): Traffic {
    const open = [...this.#open];
    return {
      receivedBytes: open.reduce((sum, { sent }) => sum + sent, this.#ended.receivedBytes),
      sentBytes: open.reduce((sum, { received }) => sum + received, this.#ended.sentBytes),
      connections: this.#ended.connections + open.length,
    };
  }

  #startKept(host: string, port: number, use: (client: TestClient) => Promise<void>): void {
    let client: TestClient | undefined;
    this.start(async () => {
      client ??= await this.#connect(host, port);
      await use(client);
    });
  }

  async #useShortConnection(host: string, port: number): Promise<void> {
    const client = await this.#connect(host, port);
    await exchange(client, 'hello there', 11);
    await client.end();
    assert.deepEqual(await client.ended, { kind: 'end' });
    this.#count(client);
    await client.close();
  }

  async #connect(host: string, port: number): Promise<TestClient> {
    const client = await connectClient({ host, port });
    this.#open.add(client);
    return client;
  }

  #count(client: TestClient): void {
    this.#open.delete(client);
    this.#ended.receivedBytes += client.sent;
    this.#ended.sentBytes += client.received;
    this.#ended.connections += 1;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await Promise.all([...this.#open].map((client) => client.close()));
  }
}

/** Clients of a tenant with a limit of connections. They hold as many connections as the proxies admit, and exchange some of them. */
export class LimitedClients extends Repetition {
  readonly #open: TestClient[] = [];
  /** The highest number of connections that were open at the same time. */
  maxOpen = 0;
  refused = 0;
  #turn = 0;

  constructor({ addresses, port }: Target) {
    super();
    this.start(async () => {
      const host = addresses[this.#turn++ % addresses.length] ?? '';
      if (this.#turn % 7 === 0) await this.#closeOldest();
      const client = await tryConnection(host, port);
      if (client === undefined) {
        this.refused += 1;
        return;
      }
      this.#open.push(client);
      this.maxOpen = Math.max(this.maxOpen, this.#open.length);
    });
  }

  get open(): number {
    return this.#open.length;
  }

  async #closeOldest(): Promise<void> {
    const client = this.#open.shift();
    if (client === undefined) return;
    await exchange(client, 'y', 1);
    await client.close();
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await super[Symbol.asyncDispose]();
    await Promise.all(this.#open.map((client) => client.close()));
  }
}

/** Clients of a suspended tenant, none of whom may be served. */
export class SuspendedClients extends Repetition {
  refused = 0;

  constructor({ addresses, port }: Target) {
    super();
    for (const host of addresses) {
      this.start(async () => {
        const client = await tryConnection(host, port);
        await client?.close();
        assert.equal(client, undefined, `a client of a suspended tenant was served at ${host}`);
        this.refused += 1;
      });
    }
  }
}

async function exchange(client: TestClient, text: string, bytes: number): Promise<void> {
  await client.send(text);
  await client.take(bytes);
}

/** Opens a connection and exchanges a byte. Returns undefined if the client is refused. */
async function tryConnection(host: string, port: number): Promise<TestClient | undefined> {
  let client: TestClient | undefined;
  try {
    client = await connectClient({ host, port });
    await exchange(client, 'x', 1);
    return client;
  } catch {
    await client?.close();
    return undefined;
  }
}
