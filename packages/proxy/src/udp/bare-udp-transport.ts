import { BareUdpListener } from './bare-udp-listener.ts';
import { connectBare } from './bare-udp-upstream.ts';
import type { UdpTransport } from './transport.ts';

/** UDP on the handles that `dgram` itself stands on, without its event emitters, look-ups and copies of lists. */
export const bareUdpTransport: UdpTransport = {
  bind: (at, events) => new BareUdpListener(at, events),
  connect: connectBare,
};
