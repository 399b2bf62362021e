import { joinItems, joinSentences, portsText } from '../message-text.ts';
import { type EndpointsEntry, endpointKey, type PortEntry, type ServiceEntry } from '../table/entry.ts';
import { portKey } from '../translate/allocate/allocations.ts';

// Whether the ports of a Service refuse clients because no endpoint is in use, or will refuse clients when the terminating endpoints have
// ended. `message` contains no counts of endpoints, because each change of a count would write the Service's status.
export interface Readiness {
  /** Whether at least one port has an endpoint in use. */
  readonly hasEndpoints: boolean;
  /** Why clients are or soon will be refused, and what to do; null if each port has an endpoint that does not terminate. */
  readonly message: string | null;
}

/** Returns the readiness of the accepted ports of a Service. `chunks` are all endpoints entries of the Service. */
export function readinessOf(
  service: Pick<ServiceEntry, 'ports' | 'accepted'>,
  chunks: Iterable<Pick<EndpointsEntry, 'port' | 'protocol' | 'endpoints' | 'unready' | 'leaving'>>,
): Readiness {
  const usedPorts = new Set<string>();
  const unreadyPorts = new Set<string>();
  const terminatingPorts = new Set<string>();
  for (const chunk of chunks) {
    if (chunk.leaving) terminatingPorts.add(portKey(chunk));
    if (chunk.endpoints.length > 0) usedPorts.add(portKey(chunk));
    else if (chunk.unready > 0) unreadyPorts.add(portKey(chunk));
  }
  const ports = service.ports.filter(({ error }) => error === null);
  const idle = ports.filter((port) => !usedPorts.has(portKey(port)));
  const terminating = ports.filter((port) => terminatingPorts.has(portKey(port)));
  const warnings =
    terminating.length === 0 ? [] : [terminatingText(terminating.length < ports.length ? terminating : undefined)];
  if (idle.length === 0) return { hasEndpoints: ports.length > 0, message: warnings[0] ?? null };
  const isUnready = idle.some((port) => unreadyPorts.has(portKey(port)));
  const reason = isUnready ? 'unready' : service.accepted.reason === 'EndpointForbidden' ? 'forbidden' : 'none';
  const hasEndpoints = idle.length < ports.length;
  return { hasEndpoints, message: joinSentences([messageFor(reason, { idle, isServed: hasEndpoints }), ...warnings]) };
}

type IdleReason = 'unready' | 'forbidden' | 'none';

const IDLE_TEXT: Readonly<Record<IdleReason, string>> = {
  unready: 'no endpoint is ready',
  forbidden: 'none of the endpoints is allowed',
  none: 'there is no endpoint',
};

const IDLE_HELP: Readonly<Record<IdleReason, string>> = {
  unready: 'check the readiness of the pods that the selector finds',
  forbidden: 'see the condition weir.dev/Accepted',
  none: 'check that the selector finds pods and that these pods have the target ports; if the Service has no selector, check that its EndpointSlices have',
};

interface IdlePorts {
  readonly idle: readonly PortEntry[];
  /** Whether a port of the Service that is not in `idle` has an endpoint in use. */
  readonly isServed: boolean;
}

function messageFor(reason: IdleReason, { idle, isServed }: IdlePorts): string {
  const refused = isServed ? 'clients are refused there' : 'clients are refused';
  const help = reason === 'none' ? `${IDLE_HELP.none} ${namesText(idle)}` : IDLE_HELP[reason];
  return `${IDLE_TEXT[reason]}${whereText(isServed ? idle : undefined)}, so ${refused}; ${help}`;
}

/** Returns a text with the names of the ports, because EndpointSlices refer to ports by name and not by number. */
function namesText(ports: readonly PortEntry[]): string {
  const names = ports.flatMap(({ name }) => (name === null || name === '' ? [] : `"${name}"`));
  if (names.length === 0) return 'a port without a name';
  return names.length === 1 ? `a port named ${names[0]}` : `ports named ${joinItems(names)}`;
}

/** `ports` is undefined if the text is about all ports of the Service. */
function terminatingText(ports: readonly PortEntry[] | undefined): string {
  return `${IDLE_TEXT.unready}${whereText(ports)}: only terminating endpoints serve clients, and clients are refused once these have ended; ${IDLE_HELP.unready}`;
}

function whereText(ports: readonly PortEntry[] | undefined): string {
  return ports === undefined ? '' : ` for ${portsText(ports)}`;
}

export interface EndpointCount {
  readonly ready: number;
  readonly total: number;
}

/** Returns the endpoint counts of the port with the fewest ready endpoints. A terminating endpoint is not ready, even while it serves. */
export function countEndpoints(
  { ports }: Pick<ServiceEntry, 'ports'>,
  chunks: Iterable<EndpointsEntry>,
): EndpointCount {
  const served = ports.filter(({ error }) => error === null);
  const byPort = new Map(
    served.map((port) => [portKey(port), { ready: new Set<string>(), terminating: new Set<string>(), unready: 0 }]),
  );
  for (const chunk of chunks) {
    const count = byPort.get(portKey(chunk));
    if (count === undefined) continue;
    const keys = chunk.leaving ? count.terminating : count.ready;
    for (const endpoint of chunk.endpoints) keys.add(endpointKey(endpoint));
    count.unready += chunk.unready;
  }
  const counts = [...byPort.values()].map(({ ready, terminating, unready }) => ({
    ready: ready.size,
    total: ready.size + terminating.size + unready,
  }));
  return counts.sort((a, b) => a.ready - b.ready || a.total - b.total)[0] ?? { ready: 0, total: 0 };
}
