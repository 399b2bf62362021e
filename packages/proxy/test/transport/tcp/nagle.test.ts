// Tests when an outgoing connection turns off Nagle's algorithm. Turning it off takes a system call, which most
// connections never need.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RawTcpStream } from '../../../src/transport/tcp/raw-stream.ts';
import type { TcpHandle } from '../../../src/transport/tcp/raw-tcp-binding.ts';
import { StreamRecorder } from './stream-recorder.ts';

/**
 * Returns a connected stream with a fake handle that completes every write at once, and the list of calls to the
 * handle.
 */
function connected(): { readonly stream: RawTcpStream; readonly calls: string[] } {
  const calls: string[] = [];
  const handle = {
    fd: -1,
    writeQueueSize: 0,
    useUserBuffer: () => undefined,
    readStart: () => 0,
    setNoDelay: () => calls.push('no delay'),
    writeBuffer: () => {
      calls.push('write');
      return 0;
    },
  };
  const stream = new RawTcpStream(handle as unknown as TcpHandle, 'unused');
  stream.connecting(new StreamRecorder());
  stream.connected(0);
  return { stream, calls };
}

test('makes no call for one small write, and turns Nagle off before the second', () => {
  const { stream, calls } = connected();
  stream.write(Buffer.alloc(100));
  assert.deepEqual(calls, ['write']);
  stream.write(Buffer.alloc(100));
  stream.write(Buffer.alloc(100));
  assert.deepEqual(calls, ['write', 'no delay', 'write', 'write']);
});

test('turns Nagle off before a first write of several segments', () => {
  const { stream, calls } = connected();
  stream.write(Buffer.alloc(1_025));
  assert.deepEqual(calls, ['no delay', 'write']);
});
