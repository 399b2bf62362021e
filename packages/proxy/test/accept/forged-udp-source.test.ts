// Tests datagrams whose source is a UDP listener of the proxy itself. Such a source is always forged.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Endpoint } from '@weir/model';
import { hostOf } from '../../src/transport/peer-address.ts';
import type { UdpListenSocketEvents, UdpTransport } from '../../src/transport/udp-transport.ts';
import { webService } from '../fixtures/services.ts';
import { startWorkerInTest } from '../fixtures/worker-in-test.ts';

const ENDPOINT: Endpoint = { address: '10.0.0.1', port: 53 };
const BYTES = new Uint8Array(1);

test('opens no flow for a datagram from a UDP listener of the proxy', async () => {
  const listeners: UdpListenSocketEvents[] = [];
  const flows: Endpoint[] = [];
  const udpTransport: UdpTransport = {
    bind(_at, events) {
      listeners.push(events);
      setImmediate(() => events.onListening());
      return { send: () => undefined, flush: () => undefined, takeDropped: () => 0, close: () => undefined };
    },
    connect(to) {
      flows.push(to);
      return { send: () => undefined, close: () => undefined };
    },
  };
  using worker = await startWorkerInTest(webService([ENDPOINT], { protocol: 'UDP' }), { udpTransport });
  const receive = (host: string, port: number): void => listeners[0]?.onMessage(BYTES, hostOf(host), port);
  receive(worker.host, worker.port);
  receive(worker.host, worker.port);
  assert.deepEqual([worker.outcomes(), flows], [{ 'forged-source': 2 }, []]);
  receive(worker.host, worker.port + 1);
  receive('192.0.2.1', worker.port);
  assert.deepEqual([worker.outcomes(), flows.length], [{ 'forged-source': 2 }, 2]);
});
