// A process that runs out of descriptors.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connectRaw, echoServer, eventually, type RawClient } from '@weir/testkit';
import type { ProxySelfView } from '../../src/proxy-view.ts';
import { PORT } from '../fixtures/ports.ts';
import { endpointOf } from '../fixtures/serving.ts';

const PROGRAM = fileURLToPath(new URL('../fixtures/few-descriptors.ts', import.meta.url));
const LIMIT = 200;

test('at its limit of descriptors a proxy refuses the new, keeps the old, does not spin, and heals by itself', async (t) => {
  await using backend = await echoServer();
  const child = spawn(
    'sh',
    [
      '-c',
      'ulimit -n "$0" && exec "$@"',
      String(LIMIT),
      process.execPath,
      '--conditions=source',
      PROGRAM,
      JSON.stringify(endpointOf(backend)),
    ],
    { stdio: ['pipe', 'pipe', 'pipe'] },
  );
  t.after(() => child.kill('SIGKILL'));
  let logged = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    logged += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async (): Promise<Record<string, unknown>> => {
    const { value } = await lines.next();
    assert.ok(value !== undefined, logged);
    return JSON.parse(value);
  };
  const ask = async (): Promise<{ view: ProxySelfView; cpu: NodeJS.CpuUsage }> => {
    child.stdin.write('?\n');
    return (await read()) as unknown as { view: ProxySelfView; cpu: NodeJS.CpuUsage };
  };
  const { address } = (await read()) as { address: string };

  const clients: RawClient[] = [];
  let refused = 0;
  for (let count = 0; count < LIMIT; count += 1) {
    try {
      const client = await connectRaw({ host: address, port: PORT });
      await echo(client);
      clients.push(client);
    } catch {
      refused += 1;
    }
  }
  assert.ok(refused > 0 && clients.length > 20, `${clients.length} let in, ${refused} refused`);
  const full = await ask();
  assert.equal(full.view.services[0]?.outcomes['no-descriptors'], refused);
  assert.equal(full.view.connections, clients.length);
  for (const client of clients) await echo(client);
  await eventually(() => assert.match(logged, /"limit":200,.*descriptors become few/));
  const { cpu } = await ask();
  const spentMs = (cpu.user + cpu.system - full.cpu.user - full.cpu.system) / 1_000;
  t.diagnostic(`${clients.length} let in, ${refused} refused; ${spentMs} ms of CPU meanwhile`);

  for (const client of clients.splice(0, 10)) await client.close();
  await eventually(async () => assert.equal((await ask()).view.connections, clients.length));
  await using next = await connectRaw({ host: address, port: PORT });
  await echo(next);
  for (const client of clients) await client.close();
  // However many come at once, each is served, or refused.
  let served = 0;
  await Promise.all(
    Array.from({ length: LIMIT }, async () => {
      try {
        await using client = await connectRaw({ host: address, port: PORT });
        await echo(client);
        served += 1;
      } catch {}
    }),
  );
  assert.ok(served > 20);
  const { view } = await ask();
  assert.equal(view.services[0]?.outcomes.internal, undefined);
  assert.deepEqual(
    view.threads.map(({ ends }) => ends),
    [0, 0],
  );
});

async function echo(client: RawClient): Promise<void> {
  await client.send('echo');
  await client.take(4);
}
