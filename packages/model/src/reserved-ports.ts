// Ports of the nodes that no Service may have: those of Kubernetes and of Weir, always, and those that the operator adds.
import { isPortInRanges, type PortRange, parsePortRange } from './port-range.ts';
import type { FleetSettings } from './snapshot.ts';

/** Who needs a port: `always` Kubernetes or Weir, `operator` what else the operator runs on the nodes. */
interface Reservation extends PortRange {
  readonly by: 'always' | 'operator';
}

/** SSH, etcd, the API server, the kubelet and its neighbours, node ports, and Weir's own console and admin ports. */
const BUILT_IN_RESERVATIONS: readonly Reservation[] = [
  { from: 22, to: 22, by: 'always' },
  { from: 2379, to: 2380, by: 'always' },
  { from: 6443, to: 6443, by: 'always' },
  { from: 8686, to: 8687, by: 'always' },
  { from: 10_250, to: 10_259, by: 'always' },
  { from: 30_000, to: 32_767, by: 'always' },
];

/** Why no Service may have the port, be it TCP or UDP; undefined: it may be had. */
export function reservationFor(
  port: number,
  { reservedPorts }: Pick<FleetSettings, 'reservedPorts'>,
): Reservation | undefined {
  const holds = ({ from, to }: PortRange): boolean => from <= port && port <= to;
  const added = reservedPorts.find(holds);
  return BUILT_IN_RESERVATIONS.find(holds) ?? (added && { ...added, by: 'operator' });
}

/** What `sharedPorts` may hold, for whoever wrote something else. */
export const SHARED_PORT_FORMAT = 'a TCP port from 1 to 65535 that the nodes do not need themselves, such as 443';

/** One of the ports that Services share by their host names; undefined: the text is none, or one that is always reserved. */
export function parseSharedPort(text: string): number | undefined {
  const port = text.includes('-') ? undefined : parsePortRange(text)?.from;
  return port === undefined || isPortInRanges(port, BUILT_IN_RESERVATIONS) ? undefined : port;
}

/** Ports that an operator reserves and shares at once: nobody can say which is meant. */
export function reservedSharedPorts({
  reservedPorts,
  sharedPorts,
}: Pick<FleetSettings, 'reservedPorts' | 'sharedPorts'>): readonly number[] {
  return sharedPorts.filter((port) => isPortInRanges(port, reservedPorts));
}
