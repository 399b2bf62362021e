import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectClient } from '@weir/testkit';
import { requireProgram, startRedis } from '../src/index.ts';

describe('a real redis-server', requireProgram('redis'), () => {
  test('keeps its port and data across restarts, including SIGKILL', async () => {
    await using redis = await startRedis();
    await assertReply(redis.port, 'SET name weir', /\+OK\r\n/);
    await redis.restart();
    await assertReply(redis.port, 'GET name', /weir\r\n/);
    await redis.restart({ signal: 'SIGKILL' });
    await assertReply(redis.port, 'GET name', /weir\r\n/);
  });

  test('is empty after a wipe', async () => {
    await using redis = await startRedis();
    await assertReply(redis.port, 'SET name weir', /\+OK\r\n/);
    await redis.wipe();
    await assertReply(redis.port, 'GET name', /^\$-1\r\n/);
  });

  test('does not evict keys, as in production', async () => {
    await using redis = await startRedis();
    await assertReply(redis.port, 'CONFIG GET maxmemory-policy', /noeviction/);
  });

  test('answers commands sent during a pause after resuming', async () => {
    await using redis = await startRedis();
    await using client = await connectClient({ port: redis.port });
    redis.pause();
    await client.send('PING\r\n');
    await using other = await connectClient({ port: redis.port, timeoutMs: 1_000 });
    await other.send('PING\r\n');
    assert.equal(client.received, 0);
    redis.resume();
    await client.take(/\+PONG\r\n/);
    await other.take(/\+PONG\r\n/);
  });

  test('requires the given password', async () => {
    await using redis = await startRedis({ password: 'secret' });
    assert.match(redis.url, /:secret@/);
    await assertReply(redis.port, 'PING', /NOAUTH/);
    await using client = await connectClient({ port: redis.port });
    await client.send('AUTH secret\r\nPING\r\n');
    await client.take(/\+PONG\r\n/);
  });
});

async function assertReply(port: number, command: string, reply: RegExp): Promise<void> {
  await using client = await connectClient({ port });
  await client.send(`${command}\r\n`);
  await client.take(reply);
}
