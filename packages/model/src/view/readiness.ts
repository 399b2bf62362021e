// Which ports of a Service refuse their clients because no endpoint is in use, and what to say of it. Without figures: they change
// by themselves, and each change would be news.
import type { EndpointsEntry, PortEntry, ServiceEntry } from '../table/entry.ts';
import { portKey } from '../translate/port-key.ts';
import { portsText } from '../translate/text.ts';

export interface Readiness {
  /** At least one port has an endpoint in use. */
  readonly isServed: boolean;
  /** Why clients are refused and what to do; null: each port has an endpoint in use. */
  readonly message: string | null;
}

/** The readiness of the ports that a Service is served on. `chunks`: all endpoint entries of the Service. */
export function readinessOf(
  service: Pick<ServiceEntry, 'ports' | 'accepted'>,
  chunks: Iterable<Pick<EndpointsEntry, 'port' | 'protocol' | 'endpoints' | 'unready'>>,
): Readiness {
  const used = new Set<string>();
  const unready = new Set<string>();
  for (const chunk of chunks) {
    if (chunk.endpoints.length > 0) used.add(portKey(chunk));
    else if (chunk.unready > 0) unready.add(portKey(chunk));
  }
  const ports = service.ports.filter(({ error }) => error === null);
  const idle = ports.filter((port) => !used.has(portKey(port)));
  if (idle.length === 0) return { isServed: ports.length > 0, message: null };
  const isUnready = idle.some((port) => unready.has(portKey(port)));
  const reason = isUnready ? 'unready' : service.accepted.reason === 'EndpointForbidden' ? 'forbidden' : 'none';
  const isServed = idle.length < ports.length;
  return { isServed, message: messageFor(reason, isServed ? idle : undefined) };
}

type Reason = 'unready' | 'forbidden' | 'none';

const WHAT: Readonly<Record<Reason, string>> = {
  unready: 'no endpoint is ready',
  forbidden: 'none of the endpoints may be used',
  none: 'there is no endpoint',
};
const HELP: Readonly<Record<Reason, string>> = {
  unready: 'check the readiness of the pods that the selector finds',
  forbidden: 'see the condition weir.dev/Accepted',
  none: 'check which pods the selector finds and that they have the target ports, or, without a selector, the EndpointSlices of the Service',
};

/** `ports`: only these; undefined: all of the Service. */
function messageFor(reason: Reason, ports: readonly PortEntry[] | undefined): string {
  const where = ports === undefined ? '' : ` for ${portsText(ports)}`;
  const refused = ports === undefined ? 'clients are refused' : 'clients are refused there';
  return `${WHAT[reason]}${where}, so ${refused}; ${HELP[reason]}`;
}
