import type { ServiceView } from './proxy-view.ts';
import { REFUSED_OUTCOMES, SERVICE_NAMES, SERVICES, type ServiceName } from './services.ts';
import { type ResourceUsage, residentBytes, type SoakResult, usedBytes } from './soak-result.ts';

// Checks the result of a soak. A finding is a text that describes one defect; a good result has no findings.
const MIB = 1024 * 1024;

/**
 * Growth up to these limits does not count as a leak, because V8 compiles code and buffers grow. Only `residentBytes` includes the free
 * memory of malloc; malloc keeps as much free memory as the largest burst of load needed.
 */
export const ALLOWED_GROWTH: {
  readonly descriptors: number;
  readonly heldBytes: number;
  readonly mallocBytes: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
} = {
  descriptors: 2,
  heldBytes: 12 * MIB,
  mallocBytes: 2 * MIB,
  residentBytes: 24 * MIB,
  heapBytes: 4 * MIB,
};

export function findingsFor(reading: SoakResult): string[] {
  const { view, proxyLog, endedWorkers, exit } = reading;
  const failedConnections = proxyLog.match(/a connection ended because of a bug/g)?.length ?? 0;
  const ended = proxyLog.match(/worker ended; starting another one/g)?.length ?? 0;
  return [
    ...(view.connections === 0 ? [] : [`${view.connections} connections are still active`]),
    ...(view.workers === reading.workers ? [] : [`${view.workers} of ${reading.workers} workers are up`]),
    ...(failedConnections === 0 ? [] : [`${failedConnections} connections failed in the proxy; see its log`]),
    ...(ended === endedWorkers ? [] : [`${ended} workers ended instead of ${endedWorkers}`]),
    ...(exit.code === 0 ? [] : [`the proxy ended with ${exit.signal ?? `code ${exit.code}`}`]),
    ...checkResourceUsage(reading.before, reading.after),
    ...SERVICE_NAMES.flatMap((name) => {
      const check = SERVICES[name].protocol === 'UDP' ? [checkUdpFlows] : [checkConnections, checkMetering];
      return check.flatMap((each) => each(name, reading)).map((finding) => `${name}: ${finding}`);
    }),
  ];
}

export function checkResourceUsage(before: ResourceUsage, after: ResourceUsage): string[] {
  const kinds = [...new Set([...Object.keys(before.descriptors), ...Object.keys(after.descriptors)])].sort();
  const descriptors = kinds.flatMap((kind) => {
    const [was = 0, is = 0] = [before.descriptors[kind], after.descriptors[kind]];
    return Math.abs(is - was) <= ALLOWED_GROWTH.descriptors
      ? []
      : [`${is} descriptors of kind "${kind}" instead of ${was}`];
  });
  return [
    ...descriptors,
    ...checkGrowth('memory in use by malloc', {
      before: before.malloc.used,
      after: after.malloc.used,
      max: ALLOWED_GROWTH.mallocBytes,
    }),
    ...checkGrowth('memory in use', {
      before: usedBytes(before),
      after: usedBytes(after),
      max: ALLOWED_GROWTH.heldBytes,
    }),
    ...checkGrowth('resident memory', {
      before: residentBytes(before),
      after: residentBytes(after),
      max: ALLOWED_GROWTH.residentBytes,
    }),
    ...(['main', 'workers'] as const).flatMap((who) =>
      checkGrowth(`the heap of ${who}`, {
        before: before.heapBytes[who],
        after: after.heapBytes[who],
        max: ALLOWED_GROWTH.heapBytes,
      }),
    ),
  ];
}

function checkGrowth(
  what: string,
  { before, after, max }: { readonly before: number; readonly after: number; readonly max: number },
): string[] {
  return after - before <= max ? [] : [`${what} went from ${formatMiB(before)} to ${formatMiB(after)}`];
}

function formatMiB(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

/** Outcomes of connections that are certainly in the Service's counter `connections`. */
const ROUTED_OUTCOMES = [
  'completed',
  'reset-by-client',
  'reset-by-endpoint',
  'connect-failed',
  'connect-timeout',
  'idle-timeout',
  'drained',
];

/** Returns findings unless every accepted connection has exactly one outcome, and no connection failed without an injected fault. */
export function checkConnections(name: ServiceName, { view, clientTotals, endedWorkers }: SoakResult): string[] {
  const count = view.services.find((service) => service.name === name);
  if (count === undefined) return ['the proxy has no counters'];
  const { established, clientOutcomes, possiblyUnseen } = clientTotals[name];
  const { active, counters } = count;
  const all = sumOutcomes(count, Object.keys(count.outcomes));
  const surely = sumOutcomes(count, ROUTED_OUTCOMES);
  const perhaps = all - sumOutcomes(count, REFUSED_OUTCOMES);
  const internal = count.outcomes.internal ?? 0;
  const findings: string[] = [];
  if (established === 0) findings.push('no client connected');
  if (active !== 0) findings.push(`${active} connections are still active`);
  if (clientOutcomes['timed-out'] > 0) findings.push(`${clientOutcomes['timed-out']} clients were left waiting`);
  if (clientOutcomes.corrupted > 0) findings.push(`${clientOutcomes.corrupted} clients received a wrong byte`);
  if (counters.connections < surely || counters.connections > perhaps) {
    findings.push(
      `the proxy counted ${counters.connections} connections, but its outcomes allow only ${surely} to ${perhaps}`,
    );
  }
  if (all > established || all < established - possiblyUnseen) {
    const least = established - possiblyUnseen;
    findings.push(
      `the proxy counted ${all} outcomes, but clients connected ${least === established ? '' : `${least} to `}${established} times`,
    );
  }
  if (internal > 0 && endedWorkers === 0)
    findings.push(`${internal} connections have the outcome "internal", although no worker was ended`);
  return [
    ...findings,
    ...checkCompletedConnections(name, {
      completed: count.outcomes.completed ?? 0,
      clean: clientOutcomes.clean,
      internal,
    }),
  ];
}

/**
 * Returns a finding if the proxy completed fewer connections than clients with the outcome `clean`, or if it completed more although
 * no client of the Service sends RST. Each connection with the outcome `internal` permits a difference of one.
 */
function checkCompletedConnections(
  name: ServiceName,
  { completed, clean, internal }: { readonly completed: number; readonly clean: number; readonly internal: number },
): string[] {
  const { isEcho, clientProfile } = SERVICES[name];
  if (!isEcho) return [];
  const tooFew = completed < clean - internal;
  const tooMany = clientProfile === 'orderly' && clean < completed - internal;
  return tooFew || tooMany
    ? [`the proxy counted ${completed} connections as completed, but ${clean} clients saw FIN both ways`]
    : [];
}

function sumOutcomes({ outcomes }: ServiceView, names: readonly string[]): number {
  return names.reduce((total, outcome) => total + (outcomes[outcome] ?? 0), 0);
}

/**
 * Returns findings unless every flow has ended with one outcome, and the metered bytes in each direction are at least what the
 * receiving side received and at most what the sending side sent.
 */
export function checkUdpFlows(
  name: ServiceName,
  { view, ledger, datagramTotals, endpointTotals }: SoakResult,
): string[] {
  const count = view.services.find((service) => service.name === name);
  const metered = ledger[name];
  if (count === undefined || metered === undefined) return ['the proxy has no counters, or the ledger has no entry'];
  const ends = Object.entries(count.outcomes).filter(([outcome]) => !REFUSED_OUTCOMES.includes(outcome));
  const outcomes = ends.reduce((sum, [, each]) => sum + each, 0);
  const end = endpointTotals[name];
  return [
    ...(count.active === 0 ? [] : [`${count.active} flows are still active`]),
    ...(datagramTotals.answeredSockets > 0 ? [] : ['no client had a response']),
    ...(datagramTotals.corrupted === 0
      ? []
      : [`${datagramTotals.corrupted} echoed datagrams differ from the sent datagrams`]),
    ...(count.counters.connections === outcomes
      ? []
      : [`the proxy counted ${count.counters.connections} flows, but ${outcomes} outcomes`]),
    ...(metered.connections >= datagramTotals.answeredSockets
      ? []
      : [`the ledger has ${metered.connections} flows, but ${datagramTotals.answeredSockets} clients got a response`]),
    ...checkBytesBetween('received', metered.receivedBytes, { min: end.read, max: datagramTotals.sentBytes }),
    ...checkBytesBetween('sent', metered.sentBytes, { min: datagramTotals.readBytes, max: end.written }),
  ];
}

/** Bytes that the proxy may have sent but a client has not read: 4 MiB in the send buffer (`tcp_wmem`), 8 MiB in the receive buffer. */
export const MAX_UNREAD_BYTES: number = 12 * 1024 * 1024;
/** Size of the alert that the proxy sends to a client after a refused ClientHello (RFC 8446, 6). No endpoint sends these bytes. */
const TLS_ALERT_BYTES = 7;

/**
 * Returns findings unless the ledger equals the counters of the proxy, and the bytes in each direction are within bounds. The minimum
 * is what the receiving side received, the maximum is what the sending side sent. An echo returns all bytes of a client with the
 * outcome `clean`, so these bytes are exact.
 */
export function checkMetering(name: ServiceName, { view, ledger, clientTotals, endpointTotals }: SoakResult): string[] {
  const service = view.services.find((each) => each.name === name);
  const counters = service?.counters;
  const metered = ledger[name];
  if (counters === undefined || metered === undefined) return ['the ledger has no entry'];
  const totals = clientTotals[name];
  const others = totals.established - totals.clientOutcomes.clean;
  const { isEcho } = SERVICES[name];
  const clean = isEcho ? { sent: totals.cleanSent, read: totals.cleanRead } : { sent: 0, read: 0 };
  const end = endpointTotals[name];
  const { 'bad-client-hello': bad = 0, 'unknown-host': unknown = 0 } = service?.outcomes ?? {};
  const alerts = TLS_ALERT_BYTES * (bad + unknown);
  const found = [
    ...(['receivedBytes', 'sentBytes', 'connections'] as const).flatMap((each) =>
      counters[each] === metered[each]
        ? []
        : [`${each} is ${metered[each]} in the ledger, but the proxy counted ${counters[each]}`],
    ),
    ...checkBytesBetween('received', metered.receivedBytes, {
      min: Math.max(clean.sent, end.read),
      max: totals.cleanSent + totals.otherSent,
    }),
    ...checkBytesBetween('sent', metered.sentBytes, {
      min: totals.cleanRead + totals.otherRead,
      max: Math.min(totals.cleanRead + totals.otherRead + others * MAX_UNREAD_BYTES, end.written + alerts),
    }),
  ];
  return found;
}

export function checkBytesBetween(
  what: string,
  value: number,
  { min, max }: { readonly min: number; readonly max: number },
): string[] {
  if (value >= min && value <= max) return [];
  return [`the ledger has ${value} bytes ${what} instead of ${min === max ? min : `${min} to ${max}`}`];
}
