// Whether what a soak has read is as it has to be. Pure: each finding is a sentence, and none is the only good answer.
import { checkConnections } from './check-connections.ts';
import { checkUdpFlows } from './check-datagrams.ts';
import { checkMetering } from './check-metering.ts';
import { type ResourceUsage, residentBytes, type SoakResult, usedBytes } from './reading.ts';
import { SERVICE_NAMES, SERVICES } from './services.ts';

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
  const ended = proxyLog.match(/worker ended and is replaced/g)?.length ?? 0;
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
