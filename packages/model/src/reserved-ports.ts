// Ports of the nodes that no Service may use: the ports of Kubernetes and of Weir, and the ports that the operator reserves.

import type { FleetSettings } from './fleet-settings.ts';
import { isPortInRanges, type PortRange, parsePortRange } from './port-range.ts';

/** `always`: Kubernetes or Weir needs the ports. `operator`: the operator reserved the ports. */
interface Reservation extends PortRange {
  readonly by: 'always' | 'operator';
}

/** SSH, etcd, the API server, Weir's console and admin ports, the kubelet and other components of Kubernetes, and node ports. */
const BUILT_IN_RESERVATIONS: readonly Reservation[] = [
  { from: 22, to: 22, by: 'always' },
  { from: 2379, to: 2380, by: 'always' },
  { from: 6443, to: 6443, by: 'always' },
  { from: 8686, to: 8687, by: 'always' },
  { from: 10_250, to: 10_259, by: 'always' },
  { from: 30_000, to: 32_767, by: 'always' },
];

/** Returns the reservation of a TCP or UDP port; undefined if the port is not reserved. No Service may use a reserved port. */
export function reservationFor(
  port: number,
  { reservedPorts }: Pick<FleetSettings, 'reservedPorts'>,
): Reservation | undefined {
  const contains = ({ from, to }: PortRange): boolean => from <= port && port <= to;
  const byOperator = reservedPorts.find(contains);
  return BUILT_IN_RESERVATIONS.find(contains) ?? (byOperator && { ...byOperator, by: 'operator' });
}

/** The format that `parseSharedPort` accepts, for error messages. */
export const SHARED_PORT_FORMAT = 'a TCP port from 1 to 65535 that the nodes do not need themselves, such as 443';

/** Parses a port that Services share by host name; undefined if the text is not a port, or if Kubernetes or Weir needs the port. */
export function parseSharedPort(text: string): number | undefined {
  const port = text.includes('-') ? undefined : parsePortRange(text)?.from;
  return port === undefined || isPortInRanges(port, BUILT_IN_RESERVATIONS) ? undefined : port;
}

/** Returns the ports that the settings list both as reserved and as shared. A port cannot be both. */
export function reservedSharedPorts({
  reservedPorts,
  sharedPorts,
}: Pick<FleetSettings, 'reservedPorts' | 'sharedPorts'>): readonly number[] {
  return sharedPorts.filter((port) => isPortInRanges(port, reservedPorts));
}
