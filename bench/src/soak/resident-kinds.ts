// What of a process is in memory, by what it was asked for; glibc and V8 on Linux.
import { readFileSync } from 'node:fs';

export const residentKindNames = ['malloc', 'V8 and large buffers', 'machine code', 'stacks', 'files'] as const;
export type ResidentKind = (typeof residentKindNames)[number];
/** KiB of each. */
export type ResidentKinds = Readonly<Record<ResidentKind, number>>;

export function residentKinds(pid: number): ResidentKinds {
  return parseKinds(readFileSync(`/proc/${pid}/smaps`, 'utf8'));
}

type Mapping = {
  readonly start: number;
  readonly end: number;
  readonly rights: string;
  readonly name: string;
  readonly kib: number;
};

const header = /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+ *(.*)$/;

export function parseKinds(smaps: string): ResidentKinds {
  const mappings = smaps
    .split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
    .filter((each) => each !== '')
    .map(parseMapping);
  const kinds: Record<ResidentKind, number> = {
    malloc: 0,
    'V8 and large buffers': 0,
    'machine code': 0,
    stacks: 0,
    files: 0,
  };
  for (const [index, mapping] of mappings.entries()) {
    kinds[kindOf(mapping, { before: mappings[index - 1], after: mappings[index + 1] })] += mapping.kib;
  }
  return kinds;
}

function parseMapping(text: string): Mapping {
  const [, start = '', end = '', rights = '', name = ''] = header.exec(text.split('\n', 1)[0] ?? '') ?? [];
  const [, kib] = /^Rss:\s+(\d+) kB$/m.exec(text) ?? [];
  if (kib === undefined || rights === '') throw new Error(`not /proc/<pid>/smaps: ${text.slice(0, 80)}`);
  return { start: Number.parseInt(start, 16), end: Number.parseInt(end, 16), rights, name, kib: Number(kib) };
}

type Neighbours = { readonly before: Mapping | undefined; readonly after: Mapping | undefined };

function kindOf(mapping: Mapping, { before, after }: Neighbours): ResidentKind {
  const { name, rights } = mapping;
  if (name === '[heap]' || isArena(mapping, after)) return 'malloc';
  if (name === '[stack]' || isThreadStack(mapping, before)) return 'stacks';
  if (name !== '') return 'files';
  return rights.includes('x') ? 'machine code' : 'V8 and large buffers';
}

/** HEAP_MAX_SIZE of malloc/arena.c on 64 bits: an arena begins at a multiple of it, and reserves up to the next. */
const arenaBytes = 64 * 1024 * 1024;

function isArena({ name, rights, start, end }: Mapping, after: Mapping | undefined): boolean {
  if (name !== '' || rights !== 'rw-p' || start % arenaBytes !== 0) return false;
  return end === start + arenaBytes || (isReserve(after, end) && after.end === start + arenaBytes);
}

/** Below the stack of a thread is a guard, and V8 has none of that size. */
const mostGuardBytes = 64 * 1024;

function isThreadStack({ name, rights, start }: Mapping, before: Mapping | undefined): boolean {
  if (name !== '' || rights !== 'rw-p' || before === undefined || before.end !== start) return false;
  return isReserve(before, before.start) && before.end - before.start <= mostGuardBytes;
}

function isReserve(mapping: Mapping | undefined, start: number): mapping is Mapping {
  return mapping !== undefined && mapping.name === '' && mapping.rights === '---p' && mapping.start === start;
}
