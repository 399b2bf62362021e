// What clients of a Service see, one connection at a time.
import assert from 'node:assert/strict';
import { connectClient, type EventuallyOptions, eventually } from '@weir/testkit';

const DEFAULT_WAIT: EventuallyOptions = { timeoutMs: 15_000, intervalMs: 50 };

interface ClientOptions {
  /** The address that the client has. */
  readonly from?: string;
}

/** The port answers at each address, soon. */
export async function assertEchoed(
  hosts: readonly string[],
  port: number,
  { from }: ClientOptions = {},
): Promise<void> {
  for (const host of hosts) await eventually(() => echoOnce(host, port, from), DEFAULT_WAIT);
}

/** The port answers at each address all the time until `act` is done; returns how many times. */
export async function assertEchoedDuring(
  hosts: readonly string[],
  port: number,
  act: () => Promise<unknown>,
): Promise<number> {
  let isDone = false;
  let answered = 0;
  const acting = act().finally(() => {
    isDone = true;
  });
  while (!isDone) {
    for (const host of hosts) await echoOnce(host, port, undefined);
    answered += hosts.length;
  }
  await acting;
  return answered;
}

/** Whoever connects is refused at each address, soon: there is no listener. */
export async function assertRefused(hosts: readonly string[], port: number): Promise<void> {
  for (const host of hosts) {
    await eventually(() => connectRefused(host, port), DEFAULT_WAIT);
  }
}

/** Whoever connects is refused at each address, now. */
export async function assertRefusedNow(hosts: readonly string[], port: number): Promise<void> {
  for (const host of hosts) await connectRefused(host, port);
}

/** The client is sent away without a byte, soon: there is a listener, and it is not for him. */
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
      // One that is let in is not to stay.
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
