// When Nagle's algorithm is turned off on a connection that we made: a system call that most of them never need.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RawTcpStream } from '../../../src/transport/tcp/raw-stream.ts';
import type { TcpHandle } from '../../../src/transport/tcp/raw-tcp-binding.ts';
import { StreamRecorder } from './stream-recorder.ts';

/** A connected stream whose handle takes every write at once, and what was asked of the handle. */
function connected(): { readonly stream: RawTcpStream; readonly asked: string[] } {
  const asked: string[] = [];
  const handle = {
    fd: -1,
    writeQueueSize: 0,
    useUserBuffer: () => undefined,
    readStart: () => 0,
    setNoDelay: () => asked.push('no delay'),
    writeBuffer: () => {
      asked.push('write');
      return 0;
    },
  };
  const stream = new RawTcpStream(handle as unknown as TcpHandle, 'unused');
  stream.connecting(new StreamRecorder());
  stream.connected(0);
  return { stream, asked };
}

test('one small write needs none, and the second is not held back', () => {
  const { stream, asked } = connected();
  stream.write(Buffer.alloc(100));
  assert.deepEqual(asked, ['write']);
  stream.write(Buffer.alloc(100));
  stream.write(Buffer.alloc(100));
  assert.deepEqual(asked, ['write', 'no delay', 'write', 'write']);
});

test('of a first write that may take several segments the last one is not held back', () => {
  const { stream, asked } = connected();
  stream.write(Buffer.alloc(1_025));
  assert.deepEqual(asked, ['no delay', 'write']);
});
