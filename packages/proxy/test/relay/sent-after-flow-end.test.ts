import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACTIVE, SENT } from '../../src/metering/counters.ts';
import type { UdpEndpointSocketEvents, UdpRecipient, UdpTransport } from '../../src/transport/udp-transport.ts';
import { advanceSeconds, setUpUdpFlows } from './udp-flow-setup.ts';

test('what the kernel takes when a flow has ended is counted for nobody: its row may be another tenant’s', () => {
  const peers: UdpRecipient[] = [];
  const endpoints: UdpEndpointSocketEvents[] = [];
  const transport: UdpTransport = {
    bind: () => ({ send: (_bytes, to) => void peers.push(to), close: () => undefined }),
    connect(_to, events) {
      endpoints.push(events);
      return { send: () => undefined, close: () => undefined };
    },
  };
  const { listener, wheel, row } = setUpUdpFlows({ transport });
  listener.onMessage(new Uint8Array(1), 'client', 1);
  for (const size of [100, 10]) endpoints[0]?.onMessage(new Uint8Array(size));
  peers[0]?.onSent(100);
  advanceSeconds(wheel, 100);
  assert.equal(row[ACTIVE], 0);
  assert.equal(peers.length, 2);
  peers[1]?.onSent(10);
  assert.equal(row[SENT], 100);
});
