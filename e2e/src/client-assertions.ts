// Assertions about the behaviour of a Service that its clients observe.
import assert from 'node:assert/strict';
import { connectClient, type EventuallyOptions, eventually } from '@weir/testkit';

const DEFAULT_WAIT: EventuallyOptions = { timeoutMs: 15_000, intervalMs: 50 };

interface ClientOptions {
  /** The local address of the client. */
  readonly from?: string;
}

/** Asserts that each address echoes on the port within 15 s. */
export async function assertEchoed(
  hosts: readonly string[],
  port: number,
  { from }: ClientOptions = {},
): Promise<void> {
  for (const host of hosts) await eventually(() => echoOnce(host, port, from), DEFAULT_WAIT);
}

/** Asserts that each address echoes on the port again and again until `act` resolves. Returns the number of echoes. */
export async function assertEchoedDuring(
  hosts: readonly string[],
  port: number,
  act: () => Promise<unknown>,
): Promise<number> {
  let isDone = false;
  let echoes = 0;
  const acting = act().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    for (const host of hosts) await echoOnce(host, port, undefined);
    echoes += hosts.length;
  }
  await acting;
  return echoes;
}

/** Asserts that each address refuses connections within 15 s, because no listener is open. */
export async function assertRefused(hosts: readonly string[], port: number): Promise<void> {
  for (const host of hosts) {
    await eventually(() => connectRefused(host, port), DEFAULT_WAIT);
  }
}

/**
 * Asserts that no address serves a client from now on, and that each address refuses connections within 15 s. An address may accept and
 * reset a connection that arrives while the proxy closes the listener.
 */
export async function assertCutOff(hosts: readonly string[], port: number): Promise<void> {
  for (const host of hosts) {
    let isServed = false;
    await eventually(async () => {
      try {
        await echoOnce(host, port, undefined);
        isServed = true;
      } catch (error) {
        assert.equal((error as NodeJS.ErrnoException).code, 'ECONNREFUSED');
      }
    }, DEFAULT_WAIT);
    assert.equal(isServed, false, `${host}:${port} serves a client`);
  }
}

/** Asserts that, within 15 s, each address accepts the client and closes the connection without sending data. */
export async function assertClosedWithoutData(
  hosts: readonly string[],
  port: number,
  { from }: ClientOptions,
): Promise<void> {
  for (const host of hosts) {
    await eventually(async () => {
      await using client = await connectClient({ host, port, ...(from !== undefined && { localAddress: from }) });
      await client
        .send('hello')
        .then(() => client.end())
        .catch(() => undefined);
      await client.ended;
      assert.equal(client.received, 0);
    }, DEFAULT_WAIT);
  }
}

async function connectRefused(host: string, port: number): Promise<void> {
  await assert.rejects(
    async () => {
      // `await using` closes a connection that was accepted by mistake.
      await using _ = await connectClient({ host, port });
    },
    { code: 'ECONNREFUSED' },
  );
}

async function echoOnce(host: string, port: number, from: string | undefined): Promise<void> {
  await using client = await connectClient({ host, port, ...(from !== undefined && { localAddress: from }) });
  await client.send('hello');
  assert.equal((await client.take(5)).toString(), 'hello');
  await client.end();
  assert.deepEqual(await client.ended, { kind: 'end' });
}
