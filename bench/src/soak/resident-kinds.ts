// What of a process is in memory, by what it was asked for; glibc and V8 on Linux.
import { readFileSync } from 'node:fs';

export const MEMORY_KINDS = ['malloc', 'V8 and large buffers', 'machine code', 'stacks', 'files'] as const;
export type MemoryKind = (typeof MEMORY_KINDS)[number];
/** KiB of each. */
export type ResidentKiBByKind = Readonly<Record<MemoryKind, number>>;

export function residentKiBByKind(pid: number): ResidentKiBByKind {
  return parseSmaps(readFileSync(`/proc/${pid}/smaps`, 'utf8'));
}

type Mapping = {
  readonly start: number;
  readonly end: number;
  readonly rights: string;
  readonly name: string;
  readonly kib: number;
};

const MAPPING_HEADER = /^([0-9a-f]+)-([0-9a-f]+) (\S{4}) \S+ \S+ \d+ *(.*)$/;

export function parseSmaps(smaps: string): ResidentKiBByKind {
  const mappings = smaps
    .split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)
    .filter((each) => each !== '')
    .map(parseMapping);
  const kinds: Record<MemoryKind, number> = {
    malloc: 0,
    'V8 and large buffers': 0,
    'machine code': 0,
    stacks: 0,
    files: 0,
  };
  for (const [index, mapping] of mappings.entries()) {
    kinds[memoryKindOf(mapping, { before: mappings[index - 1], after: mappings[index + 1] })] += mapping.kib;
  }
  return kinds;
}

function parseMapping(text: string): Mapping {
  const [, start = '', end = '', rights = '', name = ''] = MAPPING_HEADER.exec(text.split('\n', 1)[0] ?? '') ?? [];
  const [, kib] = /^Rss:\s+(\d+) kB$/m.exec(text) ?? [];
  if (kib === undefined || rights === '') throw new Error(`not /proc/<pid>/smaps: ${text.slice(0, 80)}`);
  return { start: Number.parseInt(start, 16), end: Number.parseInt(end, 16), rights, name, kib: Number(kib) };
}

type AdjacentMappings = { readonly before: Mapping | undefined; readonly after: Mapping | undefined };

function memoryKindOf(mapping: Mapping, { before, after }: AdjacentMappings): MemoryKind {
  const { name, rights } = mapping;
  if (name === '[heap]' || isArena(mapping, after)) return 'malloc';
  if (name === '[stack]' || isThreadStack(mapping, before)) return 'stacks';
  if (name !== '') return 'files';
  return rights.includes('x') ? 'machine code' : 'V8 and large buffers';
}

/** HEAP_MAX_SIZE of malloc/arena.c on 64 bits: an arena begins at a multiple of it, and reserves up to the next. */
const ARENA_BYTES = 64 * 1024 * 1024;

function isArena({ name, rights, start, end }: Mapping, after: Mapping | undefined): boolean {
  if (name !== '' || rights !== 'rw-p' || start % ARENA_BYTES !== 0) return false;
  return end === start + ARENA_BYTES || (isReservedAt(after, end) && after.end === start + ARENA_BYTES);
}

/** Below the stack of a thread is a guard, and V8 has none of that size. */
const MAX_GUARD_BYTES = 64 * 1024;

function isThreadStack({ name, rights, start }: Mapping, before: Mapping | undefined): boolean {
  if (name !== '' || rights !== 'rw-p' || before === undefined || before.end !== start) return false;
  return isReservedAt(before, before.start) && before.end - before.start <= MAX_GUARD_BYTES;
}

function isReservedAt(mapping: Mapping | undefined, start: number): mapping is Mapping {
  return mapping !== undefined && mapping.name === '' && mapping.rights === '---p' && mapping.start === start;
}
