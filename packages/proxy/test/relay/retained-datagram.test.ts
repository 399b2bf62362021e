import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOT_SENT, type UdpEndpointSocketEvents, type UdpTransport } from '../../src/transport/udp-transport.ts';
import { setUpUdpFlows } from './udp-flow-setup.ts';

const sharedMemory = new Uint8Array(4_096);

test('sends the retained datagram to the next endpoint, although its memory is used for other datagrams', () => {
  const { listener, sockets } = setUp();
  for (const text of ['a longer datagram', 'last']) listener.onMessage(received(text), 'client', 1);
  sharedMemory.fill(0);
  sockets[0]?.events.onError('ECONNREFUSED');
  assert.deepEqual(sockets[1]?.sent, ['last']);
});

test('sends unsent datagrams to the next endpoint in order, and the retained datagram once', () => {
  const { listener, sockets } = setUp();
  for (const text of ['one', 'two', 'three']) listener.onMessage(received(text), 'client', 1);
  sockets[0]?.events.onError('ECONNREFUSED', received('two'));
  sockets[0]?.events.onError(NOT_SENT, received('three'));
  listener.onMessage(received('four'), 'client', 1);
  assert.deepEqual(sockets[1]?.sent, ['two', 'three', 'four']);
});

test('retains no datagram after an answer, and none that is longer than 2,048 bytes', () => {
  const { listener, sockets } = setUp();
  listener.onMessage(received('answered'), 'client', 1);
  sockets[0]?.events.onMessage(received('an answer'));
  sockets[0]?.events.onError('ECONNREFUSED');
  assert.deepEqual(sockets[1]?.sent, []);
  listener.onMessage(received('short'), 'client', 1);
  listener.onMessage(received('x'.repeat(2_049)), 'client', 1);
  sockets[1]?.events.onError('ECONNREFUSED');
  assert.deepEqual(sockets[2]?.sent, []);
});

test('loses only the datagram after an error that does not concern the endpoint', () => {
  const { listener, sockets } = setUp();
  listener.onMessage(received('too long'), 'client', 1);
  sockets[0]?.events.onError('EMSGSIZE', received('too long'));
  listener.onMessage(received('shorter'), 'client', 1);
  assert.deepEqual([sockets.length, sockets[0]?.sent], [1, ['too long', 'shorter']]);
});

interface RecordedSocket {
  readonly events: UdpEndpointSocketEvents;
  readonly sent: string[];
}

function setUp(): { listener: ReturnType<typeof setUpUdpFlows>['listener']; sockets: readonly RecordedSocket[] } {
  const sockets: RecordedSocket[] = [];
  const transport: UdpTransport = {
    bind: () => ({ send: () => undefined, flush: () => undefined, takeDropped: () => 0, close: () => undefined }),
    connect(_to, events) {
      const sent: string[] = [];
      sockets.push({ events, sent });
      return { send: (bytes) => void sent.push(Buffer.from(bytes).toString()), close: () => undefined };
    },
  };
  const endpoints = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((address) => ({ address, port: 53 }));
  return { listener: setUpUdpFlows({ transport, endpoints }).listener, sockets };
}

/** Returns a datagram as a transport does: in memory that the next datagram overwrites. */
function received(text: string): Uint8Array {
  sharedMemory.fill(0);
  return sharedMemory.subarray(0, Buffer.from(sharedMemory.buffer).write(text));
}
