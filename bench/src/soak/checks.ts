import type { ServiceView } from './proxy-view.ts';
import { REFUSED_OUTCOMES, SERVICE_NAMES, SERVICES, type ServiceName } from './services.ts';
import { type ResourceUsage, residentBytes, type SoakResult, usedBytes } from './soak-result.ts';

// Whether what a soak has read is as it has to be. Pure: each finding is a sentence, and none is the only good answer.
const MIB = 1024 * 1024;

/**
 * What a process that has done nothing else needs from time to time, and V8 for what it has compiled meanwhile. What malloc has free
 * is as much as bursts once needed (README, Soak) and nobody's leak: it is in `residentBytes` alone.
 */
export const ALLOWED_GROWTH: {
  readonly files: number;
  readonly heldBytes: number;
  readonly mallocBytes: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
} = {
  files: 2,
  heldBytes: 12 * MIB,
  mallocBytes: 2 * MIB,
  residentBytes: 24 * MIB,
  heapBytes: 4 * MIB,
};

export function findingsFor(reading: SoakResult): string[] {
  const { view, proxyLog, endedWorkers, exit } = reading;
  const mistakes = proxyLog.match(/connection failed/g)?.length ?? 0;
  const ended = proxyLog.match(/worker ended; starting another one/g)?.length ?? 0;
  return [
    ...(view.connections === 0 ? [] : [`${view.connections} connections are still active`]),
    ...(view.workers === reading.workers ? [] : [`${view.workers} of ${reading.workers} workers are up`]),
    ...(mistakes === 0 ? [] : [`${mistakes} connections ended by a mistake of the proxy; see its log`]),
    ...(ended === endedWorkers ? [] : [`${ended} workers ended, and ${endedWorkers} were ended on purpose`]),
    ...(exit.code === 0 ? [] : [`the proxy ended with ${exit.signal ?? `code ${exit.code}`}`]),
    ...checkResourceUsage(reading.before, reading.after),
    ...SERVICE_NAMES.flatMap((name) => {
      const check = SERVICES[name].protocol === 'UDP' ? [checkUdpFlows] : [checkConnections, checkMetering];
      return check.flatMap((each) => each(name, reading)).map((finding) => `${name}: ${finding}`);
    }),
  ];
}

export function checkResourceUsage(before: ResourceUsage, after: ResourceUsage): string[] {
  const kinds = [...new Set([...Object.keys(before.files), ...Object.keys(after.files)])].sort();
  const files = kinds.flatMap((kind) => {
    const [was = 0, is = 0] = [before.files[kind], after.files[kind]];
    return Math.abs(is - was) <= ALLOWED_GROWTH.files ? [] : [`${is} descriptors of kind "${kind}", and ${was} before`];
  });
  return [
    ...files,
    ...checkGrowth('what malloc has given and not got back', {
      before: before.malloc.used,
      after: after.malloc.used,
      most: ALLOWED_GROWTH.mallocBytes,
    }),
    ...checkGrowth('memory in use', {
      before: usedBytes(before),
      after: usedBytes(after),
      most: ALLOWED_GROWTH.heldBytes,
    }),
    ...checkGrowth('resident memory', {
      before: residentBytes(before),
      after: residentBytes(after),
      most: ALLOWED_GROWTH.residentBytes,
    }),
    ...(['main', 'workers'] as const).flatMap((who) =>
      checkGrowth(`the heap of ${who}`, {
        before: before.heapBytes[who],
        after: after.heapBytes[who],
        most: ALLOWED_GROWTH.heapBytes,
      }),
    ),
  ];
}

function checkGrowth(
  what: string,
  { before, after, most }: { readonly before: number; readonly after: number; readonly most: number },
): string[] {
  return after - before <= most ? [] : [`${what} went from ${formatMiB(before)} to ${formatMiB(after)}`];
}

function formatMiB(bytes: number): string {
  return `${(bytes / MIB).toFixed(1)} MiB`;
}

/** Of connections that were given to the Service. */
const ROUTED_OUTCOMES = [
  'completed',
  'reset-by-client',
  'reset-by-endpoint',
  'connect-failed',
  'connect-timeout',
  'idle-timeout',
  'drained',
];

/** Every connection that the kernel accepted has exactly one outcome, and nothing ended badly without a cause. */
export function checkConnections(name: ServiceName, { view, clientTotals, endedWorkers }: SoakResult): string[] {
  const count = view.services.find((service) => service.name === name);
  if (count === undefined) return ['the proxy does not count it'];
  const { established, clientOutcomes, possiblyUnseen } = clientTotals[name];
  const { active, counters } = count;
  const all = sumOutcomes(count, Object.keys(count.outcomes));
  const surely = sumOutcomes(count, ROUTED_OUTCOMES);
  const perhaps = all - sumOutcomes(count, REFUSED_OUTCOMES);
  const internal = count.outcomes.internal ?? 0;
  const findings: string[] = [];
  if (established === 0) findings.push('no client has ever connected');
  if (active !== 0) findings.push(`${active} are still active`);
  if (clientOutcomes.stuck > 0) findings.push(`${clientOutcomes.stuck} clients were left waiting`);
  if (clientOutcomes.foreign > 0) findings.push(`${clientOutcomes.foreign} clients got a byte that was not theirs`);
  if (counters.connections < surely || counters.connections > perhaps) {
    findings.push(`${counters.connections} connections, and outcomes for ${surely} to ${perhaps}`);
  }
  if (all > established || all < established - possiblyUnseen) {
    const least = established - possiblyUnseen;
    findings.push(
      `${all} outcomes, and clients connected ${least === established ? '' : `${least} to `}${established} times`,
    );
  }
  if (internal > 0 && endedWorkers === 0) findings.push(`${internal} ended as "internal", and no worker was ended`);
  return [
    ...findings,
    ...checkCompletedConnections(name, {
      completed: count.outcomes.completed ?? 0,
      clean: clientOutcomes.clean,
      internal,
    }),
  ];
}

/** What was well for the client was well for the proxy; and the other way round, where no client ends anything by RST. */
function checkCompletedConnections(
  name: ServiceName,
  { completed, clean, internal }: { readonly completed: number; readonly clean: number; readonly internal: number },
): string[] {
  const { isEcho, clientProfile } = SERVICES[name];
  if (!isEcho) return [];
  const tooFew = completed < clean - internal;
  const tooMany = clientProfile === 'calm' && clean < completed - internal;
  return tooFew || tooMany ? [`${completed} completed, and ${clean} clients saw FIN both ways`] : [];
}

function sumOutcomes({ outcomes }: ServiceView, names: readonly string[]): number {
  return names.reduce((total, outcome) => total + (outcomes[outcome] ?? 0), 0);
}

/** Every flow has ended, with one outcome; bytes are between what one end got and the other gave. */
export function checkUdpFlows(
  name: ServiceName,
  { view, ledger, datagramTotals, endpointTotals }: SoakResult,
): string[] {
  const count = view.services.find((service) => service.name === name);
  const metered = ledger[name];
  if (count === undefined || metered === undefined) return ['the proxy does not count it'];
  const ends = Object.entries(count.outcomes).filter(([outcome]) => !REFUSED_OUTCOMES.includes(outcome));
  const outcomes = ends.reduce((sum, [, each]) => sum + each, 0);
  const end = endpointTotals[name];
  return [
    ...(count.active === 0 ? [] : [`${count.active} flows are still there`]),
    ...(datagramTotals.answered > 0 ? [] : ['no client has ever got an answer']),
    ...(datagramTotals.foreign === 0 ? [] : [`${datagramTotals.foreign} datagrams came back that were not sent`]),
    ...(count.counters.connections === outcomes
      ? []
      : [`${count.counters.connections} flows, and ${outcomes} outcomes`]),
    ...(metered.connections >= datagramTotals.answered
      ? []
      : [`${metered.connections} flows, and ${datagramTotals.answered} clients had an answer`]),
    ...checkBytesBetween('received', metered.receivedBytes, { least: end.read, most: datagramTotals.sentBytes }),
    ...checkBytesBetween('sent', metered.sentBytes, { least: datagramTotals.readBytes, most: end.written }),
  ];
}

/**
 * What may be counted as sent to a client that did not read it: what the kernel took for it (`net.ipv4.tcp_wmem`, 4 MiB, and not read
 * by the client `net.ipv4.tcp_rmem`, which no client here lets grow beyond 8 MiB).
 */
export const MAX_UNREAD_BYTES: number = 12 * 1024 * 1024;
/** RFC 8446, 6: what a client is sent that is refused by its ClientHello, and no endpoint knows of. */
const TLS_ALERT_BYTES = 7;

/**
 * The ledger is what the proxy counted. Where an echo is behind, all that ended by FIN is in it to the byte; of the rest it is between
 * what one end surely got and what the other end gave.
 */
export function checkMetering(name: ServiceName, { view, ledger, clientTotals, endpointTotals }: SoakResult): string[] {
  const service = view.services.find((each) => each.name === name);
  const counters = service?.counters;
  const metered = ledger[name];
  if (counters === undefined || metered === undefined) return ['it is not in the ledger'];
  const tally = clientTotals[name];
  const others = tally.established - tally.clientOutcomes.clean;
  const { isEcho } = SERVICES[name];
  const clean = isEcho ? { sent: tally.cleanSent, read: tally.cleanRead } : { sent: 0, read: 0 };
  const end = endpointTotals[name];
  const { 'bad-client-hello': bad = 0, 'unknown-host': unknown = 0 } = service?.outcomes ?? {};
  const alerts = TLS_ALERT_BYTES * (bad + unknown);
  const found = [
    ...(['receivedBytes', 'sentBytes', 'connections'] as const).flatMap((each) =>
      counters[each] === metered[each]
        ? []
        : [`${each} is ${metered[each]} in the ledger, and the proxy counted ${counters[each]}`],
    ),
    ...checkBytesBetween('received', metered.receivedBytes, {
      least: Math.max(clean.sent, end.read),
      most: tally.cleanSent + tally.otherSent,
    }),
    ...checkBytesBetween('sent', metered.sentBytes, {
      least: tally.cleanRead + tally.otherRead,
      most: Math.min(tally.cleanRead + tally.otherRead + others * MAX_UNREAD_BYTES, end.written + alerts),
    }),
  ];
  return found;
}

export function checkBytesBetween(
  what: string,
  value: number,
  { least, most }: { readonly least: number; readonly most: number },
): string[] {
  if (value >= least && value <= most) return [];
  return [`${what} ${value} bytes, and ${least === most ? least : `${least} to ${most}`} were`];
}
