import { RawUdpListenSocket } from './bare-udp-listener.ts';
import { connectRawUdp } from './bare-udp-upstream.ts';
import type { UdpTransport } from './transport.ts';

/** UDP on the handles that `dgram` itself stands on, without its event emitters, look-ups and copies of lists. */
export const rawUdpTransport: UdpTransport = {
  bind: (at, events) => new RawUdpListenSocket(at, events),
  connect: connectRawUdp,
};
