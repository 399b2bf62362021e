// Which ports of a Service refuse their clients because no endpoint is in use, or will when those that terminate end, and what to say
// of it. Without figures: they change by themselves, and each change would be news.
import type { EndpointsEntry, PortEntry, ServiceEntry } from '../table/entry.ts';
import { portKey } from '../translate/port-key.ts';
import { listed, portsText, sentences } from '../translate/text.ts';

export interface Readiness {
  /** At least one port has an endpoint in use. */
  readonly isServed: boolean;
  /** Why clients are refused, or soon are, and what to do; null: each port has an endpoint in use that stays. */
  readonly message: string | null;
}

/** The readiness of the ports that a Service is served on. `chunks`: all endpoint entries of the Service. */
export function readinessOf(
  service: Pick<ServiceEntry, 'ports' | 'accepted'>,
  chunks: Iterable<Pick<EndpointsEntry, 'port' | 'protocol' | 'endpoints' | 'unready' | 'leaving'>>,
): Readiness {
  const used = new Set<string>();
  const unready = new Set<string>();
  const left = new Set<string>();
  for (const chunk of chunks) {
    if (chunk.leaving) left.add(portKey(chunk));
    if (chunk.endpoints.length > 0) used.add(portKey(chunk));
    else if (chunk.unready > 0) unready.add(portKey(chunk));
  }
  const ports = service.ports.filter(({ error }) => error === null);
  const idle = ports.filter((port) => !used.has(portKey(port)));
  const leaving = ports.filter((port) => left.has(portKey(port)));
  const until = leaving.length === 0 ? [] : [leavingText(leaving.length < ports.length ? leaving : undefined)];
  if (idle.length === 0) return { isServed: ports.length > 0, message: until[0] ?? null };
  const isUnready = idle.some((port) => unready.has(portKey(port)));
  const reason = isUnready ? 'unready' : service.accepted.reason === 'EndpointForbidden' ? 'forbidden' : 'none';
  const isServed = idle.length < ports.length;
  return { isServed, message: sentences([messageFor(reason, { idle, isServed }), ...until]) };
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
  none: 'check which pods the selector finds and that they have the target ports, or, without a selector, the EndpointSlices of the Service, which have to have',
};

interface Idle {
  readonly idle: readonly PortEntry[];
  /** Others of the Service are not. */
  readonly isServed: boolean;
}

function messageFor(reason: Reason, { idle, isServed }: Idle): string {
  const refused = isServed ? 'clients are refused there' : 'clients are refused';
  const help = reason === 'none' ? `${HELP.none} ${namesText(idle)}` : HELP[reason];
  return `${WHAT[reason]}${whereText(isServed ? idle : undefined)}, so ${refused}; ${help}`;
}

/** Slices are matched by the names of ports, not by their numbers. */
function namesText(ports: readonly PortEntry[]): string {
  const names = ports.flatMap(({ name }) => (name === null || name === '' ? [] : `"${name}"`));
  if (names.length === 0) return 'a port without a name';
  return names.length === 1 ? `a port named ${names[0]}` : `ports named ${listed(names)}`;
}

/** `ports`: only these; undefined: all of the Service. */
function leavingText(ports: readonly PortEntry[] | undefined): string {
  return `${WHAT.unready}${whereText(ports)}: clients are served by endpoints that terminate, and are refused when these have ended; ${HELP.unready}`;
}

function whereText(ports: readonly PortEntry[] | undefined): string {
  return ports === undefined ? '' : ` for ${portsText(ports)}`;
}
