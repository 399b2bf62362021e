import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer } from '@weir/testkit';
import { startLink } from '../../src/cutoff/link.ts';

test('relays to the port, resets connections when it is cut, refuses new connections, and relays again', async () => {
  const server = await echoServer();
  await using link = await startLink(server.port);
  const address = { host: '127.0.0.1', port: Number(new URL(link.url).port) };
  const echo = async (): Promise<Awaited<ReturnType<typeof connectClient>>> => {
    const client = await connectClient(address);
    await client.send(Buffer.from('hello'));
    assert.equal((await client.take(5)).toString(), 'hello');
    return client;
  };
  const client = await echo();
  link.cut();
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  await assert.rejects(connectClient(address), { code: 'ECONNREFUSED' });
  await link.restore();
  await (await echo()).close();
  await server.close();
});
