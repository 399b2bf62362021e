import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ACTIVE, SENT } from '../../src/metering/counters.ts';
import type { UdpEndpointSocketEvents, UdpRecipient, UdpTransport } from '../../src/transport/udp-transport.ts';
import { advanceSeconds, setUpUdpFlows } from './udp-flow-setup.ts';

test('does not count bytes that the kernel sends after the end of a flow, whose counters may be reused', () => {
  const recipients: UdpRecipient[] = [];
  const endpoints: UdpEndpointSocketEvents[] = [];
  const transport: UdpTransport = {
    bind: () => ({
      send: (_bytes, to) => void recipients.push(to),
      flush: () => undefined,
      takeDropped: () => 0,
      close: () => undefined,
    }),
    connect(_to, events) {
      endpoints.push(events);
      return { send: () => undefined, close: () => undefined };
    },
  };
  const { listener, wheel, counters } = setUpUdpFlows({ transport });
  listener.onMessage(new Uint8Array(1), 'client', 1);
  for (const size of [100, 10]) endpoints[0]?.onMessage(new Uint8Array(size));
  recipients[0]?.onSent(100);
  advanceSeconds(wheel, 100);
  assert.equal(counters[ACTIVE], 0);
  assert.equal(recipients.length, 2);
  recipients[1]?.onSent(10);
  assert.equal(counters[SENT], 100);
});

test('counts the answers that the listener sends at the end of the flow', () => {
  const answers: { readonly size: number; readonly to: UdpRecipient }[] = [];
  let endpoint: UdpEndpointSocketEvents | undefined;
  const transport: UdpTransport = {
    bind: () => ({
      send: (bytes, to) => void answers.push({ size: bytes.length, to }),
      flush() {
        for (const { size, to } of answers.splice(0)) to.onSent(size);
      },
      takeDropped: () => 0,
      close: () => undefined,
    }),
    connect(_to, events) {
      endpoint = events;
      return { send: () => undefined, close: () => undefined };
    },
  };
  const { listener, wheel, counters } = setUpUdpFlows({ transport });
  listener.onMessage(new Uint8Array(1), 'client', 1);
  for (const size of [100, 10]) endpoint?.onMessage(new Uint8Array(size));
  advanceSeconds(wheel, 100);
  assert.deepEqual([counters[ACTIVE], counters[SENT]], [0, 110]);
});
