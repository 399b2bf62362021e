import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectRaw } from '@weir/testkit';
import { bareTransport } from '../../src/tcp/bare-transport.ts';
import { accepting } from './accepting.ts';
import { Recorder } from './recorder.ts';
import { transportContract } from './transport-contract.ts';

transportContract('bare', bareTransport);

test('a stream that may read so much at a time is told no more at once, also when it read before', async () => {
  using door = await accepting(bareTransport);
  const arrival = door.next();
  await using client = await connectRaw({ host: door.host, port: door.port });
  const { stream, events } = await arrival;
  await client.send('hello');
  await events.until(() => events.received === 5);
  stream.readStop();
  const paced = new Recorder();
  stream.accept(paced);
  stream.readAtMost?.(1_000);
  void client.sendPattern({ bytes: 2_000_000 });
  stream.readStart();
  await paced.until(() => paced.received === 2_000_000);
  const [first, ...others] = paced.chunks.map(({ length }) => length);
  assert.ok((first ?? 0) <= 262_144);
  assert.ok(others.length > 0 && others.every((length) => length <= 1_000));
});
