// Assertions about what clients of a Service observe.
import assert from 'node:assert/strict';
import { connectClient, type EventuallyOptions, eventually } from '@weir/testkit';

const DEFAULT_WAIT: EventuallyOptions = { timeoutMs: 15_000, intervalMs: 50 };

interface ClientOptions {
  /** The client's local address. */
  readonly from?: string;
}

/** Asserts that the port echoes at each address, within 15 s. */
export async function assertEchoed(
  hosts: readonly string[],
  port: number,
  { from }: ClientOptions = {},
): Promise<void> {
  for (const host of hosts) await eventually(() => echoOnce(host, port, from), DEFAULT_WAIT);
}

/** Asserts that the port echoes at each address until `act` resolves; returns the number of echoes. */
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

/** Asserts that each address refuses connections within 15 s: no listener is open. */
export async function assertRefused(hosts: readonly string[], port: number): Promise<void> {
  for (const host of hosts) {
    await eventually(() => connectRefused(host, port), DEFAULT_WAIT);
  }
}

/** Asserts that each address refuses connections now. */
export async function assertRefusedNow(hosts: readonly string[], port: number): Promise<void> {
  for (const host of hosts) await connectRefused(host, port);
}

/** Asserts that each address accepts the client and closes the connection without sending data, within 15 s. */
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
      // `await using` closes an accepted connection.
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
