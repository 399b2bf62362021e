import { joinItems, joinSentences, portsText } from '../message-text.ts';
import { type EndpointsEntry, endpointKey, type PortEntry, type ServiceEntry } from '../table/entry.ts';
import { portKey } from '../translate/allocate/port-key.ts';

// Which ports of a Service refuse their clients because no endpoint is in use, or will when those that terminate end, and what to say
// of it. Without figures: they change by themselves, and each change would be news.
export interface Readiness {
  /** At least one port has an endpoint in use. */
  readonly hasEndpoints: boolean;
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
  if (idle.length === 0) return { hasEndpoints: ports.length > 0, message: until[0] ?? null };
  const isUnready = idle.some((port) => unready.has(portKey(port)));
  const reason = isUnready ? 'unready' : service.accepted.reason === 'EndpointForbidden' ? 'forbidden' : 'none';
  const hasEndpoints = idle.length < ports.length;
  return { hasEndpoints, message: joinSentences([messageFor(reason, { idle, isServed: hasEndpoints }), ...until]) };
}

type IdleReason = 'unready' | 'forbidden' | 'none';

const IDLE_TEXT: Readonly<Record<IdleReason, string>> = {
  unready: 'no endpoint is ready',
  forbidden: 'none of the endpoints may be used',
  none: 'there is no endpoint',
};

const IDLE_HELP: Readonly<Record<IdleReason, string>> = {
  unready: 'check the readiness of the pods that the selector finds',
  forbidden: 'see the condition weir.dev/Accepted',
  none: 'check which pods the selector finds and that they have the target ports, or, without a selector, the EndpointSlices of the Service, which have to have',
};

interface IdlePorts {
  readonly idle: readonly PortEntry[];
  /** Others of the Service are not. */
  readonly isServed: boolean;
}

function messageFor(reason: IdleReason, { idle, isServed }: IdlePorts): string {
  const refused = isServed ? 'clients are refused there' : 'clients are refused';
  const help = reason === 'none' ? `${IDLE_HELP.none} ${namesText(idle)}` : IDLE_HELP[reason];
  return `${IDLE_TEXT[reason]}${whereText(isServed ? idle : undefined)}, so ${refused}; ${help}`;
}

/** Slices are matched by the names of ports, not by their numbers. */
function namesText(ports: readonly PortEntry[]): string {
  const names = ports.flatMap(({ name }) => (name === null || name === '' ? [] : `"${name}"`));
  if (names.length === 0) return 'a port without a name';
  return names.length === 1 ? `a port named ${names[0]}` : `ports named ${joinItems(names)}`;
}

/** `ports`: only these; undefined: all of the Service. */
function leavingText(ports: readonly PortEntry[] | undefined): string {
  return `${IDLE_TEXT.unready}${whereText(ports)}: clients are served by endpoints that terminate, and are refused when these have ended; ${IDLE_HELP.unready}`;
}

function whereText(ports: readonly PortEntry[] | undefined): string {
  return ports === undefined ? '' : ` for ${portsText(ports)}`;
}

export interface EndpointCount {
  readonly ready: number;
  readonly total: number;
}

/**
 * How many endpoints a Service has, of the port that has the fewest ready ones: also of one that has none at all. Those that serve
 * while they terminate are not ready.
 */
export function countEndpoints(
  { ports }: Pick<ServiceEntry, 'ports'>,
  chunks: Iterable<EndpointsEntry>,
): EndpointCount {
  const served = ports.filter(({ error }) => error === null);
  const byPort = new Map(
    served.map((port) => [portKey(port), { ready: new Set<string>(), leaving: new Set<string>(), unready: 0 }]),
  );
  for (const chunk of chunks) {
    const count = byPort.get(portKey(chunk));
    if (count === undefined) continue;
    const keys = chunk.leaving ? count.leaving : count.ready;
    for (const endpoint of chunk.endpoints) keys.add(endpointKey(endpoint));
    count.unready += chunk.unready;
  }
  const counts = [...byPort.values()].map(({ ready, leaving, unready }) => ({
    ready: ready.size,
    total: ready.size + leaving.size + unready,
  }));
  return counts.sort((a, b) => a.ready - b.ready || a.total - b.total)[0] ?? { ready: 0, total: 0 };
}
