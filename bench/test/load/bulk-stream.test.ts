import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, test } from 'node:test';
import { freePort } from '@weir/testkit';
import { bulkBlock, downloadBulk } from '../../src/load/bulk-stream.ts';

describe('downloadBulk', () => {
  test('downloads a complete stream', async () => {
    await using source = await answering((socket) => socket.end(bulkBlock().subarray(0, 100_000)));
    assert.equal((await downloadBulk(source.port, 100_000)).requestBytes, 7);
  });

  test('rejects a refused, reset, short or corrupted stream', async () => {
    await assert.rejects(downloadBulk(await freePort(), 10), /ECONNREFUSED/);
    await using resetting = await answering((socket) => socket.resetAndDestroy());
    await assert.rejects(downloadBulk(resetting.port, 10), /ECONNRESET/);
    await using short = await answering((socket) => socket.end(bulkBlock().subarray(0, 99)));
    await assert.rejects(downloadBulk(short.port, 100), /ended after 99 of 100 bytes/);
    const corrupted = bulkBlock().subarray(0, 100);
    corrupted[50] = (corrupted[50] ?? 0) ^ 1;
    await using corrupting = await answering((socket) => socket.end(corrupted));
    await assert.rejects(downloadBulk(corrupting.port, 100), /of the stream differ from the sent bytes/);
  });
});

async function answering(answer: (socket: Socket) => void): Promise<AsyncDisposable & { readonly port: number }> {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => answer(socket));
  });
  await once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const { port } = server.address() as AddressInfo;
  return { port, [Symbol.asyncDispose]: async () => void server.close() };
}
