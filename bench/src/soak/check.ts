// Whether what a soak has read is as it has to be. Pure: each finding is a sentence, and none is the only good answer.
import { checkConnections } from './check-connections.ts';
import { checkDatagrams } from './check-datagrams.ts';
import { checkMetering } from './check-metering.ts';
import { type AtRest, heldBytes, type Reading, residentBytes } from './reading.ts';
import { serviceNames, services } from './services.ts';

const MiB = 1024 * 1024;

/**
 * What a process that has done nothing else needs from time to time, and V8 for what it has compiled meanwhile. What malloc has free
 * is as much as bursts once needed (README, Soak) and nobody's leak: it is in `residentBytes` alone.
 */
export const slack: {
  readonly files: number;
  readonly heldBytes: number;
  readonly mallocBytes: number;
  readonly residentBytes: number;
  readonly heapBytes: number;
} = {
  files: 2,
  heldBytes: 12 * MiB,
  mallocBytes: 2 * MiB,
  residentBytes: 24 * MiB,
  heapBytes: 4 * MiB,
};

export function findingsFor(reading: Reading): string[] {
  const { view, said, workersEnded, exit } = reading;
  const mistakes = said.match(/connection failed/g)?.length ?? 0;
  const ended = said.match(/worker ended and is replaced/g)?.length ?? 0;
  return [
    ...(view.connections === 0 ? [] : [`${view.connections} connections are still active`]),
    ...(view.workers === reading.workers ? [] : [`${view.workers} of ${reading.workers} workers are up`]),
    ...(mistakes === 0 ? [] : [`${mistakes} connections ended by a mistake of the proxy; see its log`]),
    ...(ended === workersEnded ? [] : [`${ended} workers ended, and ${workersEnded} were ended on purpose`]),
    ...(exit.code === 0 ? [] : [`the proxy ended with ${exit.signal ?? `code ${exit.code}`}`]),
    ...checkAtRest(reading.before, reading.after),
    ...serviceNames.flatMap((name) => {
      const check = services[name].protocol === 'UDP' ? [checkDatagrams] : [checkConnections, checkMetering];
      return check.flatMap((each) => each(name, reading)).map((finding) => `${name}: ${finding}`);
    }),
  ];
}

export function checkAtRest(before: AtRest, after: AtRest): string[] {
  const kinds = [...new Set([...Object.keys(before.files), ...Object.keys(after.files)])].sort();
  const files = kinds.flatMap((kind) => {
    const [was = 0, is = 0] = [before.files[kind], after.files[kind]];
    return Math.abs(is - was) <= slack.files ? [] : [`${is} descriptors of kind "${kind}", and ${was} before`];
  });
  return [
    ...files,
    ...grown('what malloc has given and not got back', {
      before: before.malloc.used,
      after: after.malloc.used,
      most: slack.mallocBytes,
    }),
    ...grown('memory in use', { before: heldBytes(before), after: heldBytes(after), most: slack.heldBytes }),
    ...grown('resident memory', {
      before: residentBytes(before),
      after: residentBytes(after),
      most: slack.residentBytes,
    }),
    ...(['main', 'workers'] as const).flatMap((who) =>
      grown(`the heap of ${who}`, {
        before: before.heapBytes[who],
        after: after.heapBytes[who],
        most: slack.heapBytes,
      }),
    ),
  ];
}

function grown(
  what: string,
  { before, after, most }: { readonly before: number; readonly after: number; readonly most: number },
): string[] {
  return after - before <= most ? [] : [`${what} went from ${mib(before)} to ${mib(after)}`];
}

function mib(bytes: number): string {
  return `${(bytes / MiB).toFixed(1)} MiB`;
}
