import { readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import type { Inspector } from '../measure/inspector.ts';

// Reads the memory and the descriptors of a process by kind. Supports processes with glibc and V8 on Linux.
export const MEMORY_KINDS = ['malloc', 'V8 and large buffers', 'machine code', 'stacks', 'files'] as const;
export type MemoryKind = (typeof MEMORY_KINDS)[number];
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

/** Reserved size of a malloc arena (HEAP_MAX_SIZE in glibc's malloc/arena.c on 64 bits). An arena starts at a multiple of this size. */
const ARENA_BYTES = 64 * 1024 * 1024;

function isArena({ name, rights, start, end }: Mapping, after: Mapping | undefined): boolean {
  if (name !== '' || rights !== 'rw-p' || start % ARENA_BYTES !== 0) return false;
  return end === start + ARENA_BYTES || (isReservedAt(after, end) && after.end === start + ARENA_BYTES);
}

/** Maximum size of the guard before the stack of a thread. The regions that V8 reserves are larger, so they do not count as guards. */
const MAX_GUARD_BYTES = 64 * 1024;

function isThreadStack({ name, rights, start }: Mapping, before: Mapping | undefined): boolean {
  if (name !== '' || rights !== 'rw-p' || before === undefined || before.end !== start) return false;
  return isReservedAt(before, before.start) && before.end - before.start <= MAX_GUARD_BYTES;
}

function isReservedAt(mapping: Mapping | undefined, start: number): mapping is Mapping {
  return mapping !== undefined && mapping.name === '' && mapping.rights === '---p' && mapping.start === start;
}

// Reads malloc_info(3) through the inspector, so that the proxy needs no code for this purpose.

/** Bytes in all arenas and in allocations that malloc maps separately. */
export type MallocBytes = { readonly used: number; readonly free: number };

/** Calls malloc_info(3) in the process. `path` is where the process writes the result, in a temporary file. */
export async function readMallocBytes(inspector: Inspector, path: string): Promise<MallocBytes> {
  await inspector.call('Runtime.evaluate', { expression: mallocInfoExpression(path) }).catch((cause: unknown) => {
    throw new Error('failed to call malloc_info in the proxy; use Node 26 (with node:ffi) on Linux with glibc', {
      cause,
    });
  });
  const text = readFileSync(path, 'utf8');
  rmSync(path);
  return parseMallocInfo(text);
}

const mallocInfoExpression = (path: string): string => `(() => {
  const { functions: libc } = process.getBuiltinModule('node:ffi').dlopen('libc.so.6', {
    fopen: { return: 'pointer', arguments: ['string', 'string'] },
    fclose: { return: 'i32', arguments: ['pointer'] },
    malloc_info: { return: 'i32', arguments: ['i32', 'pointer'] },
  });
  const file = libc.fopen(${JSON.stringify(path)}, 'w');
  libc.malloc_info(0, file);
  libc.fclose(file);
})()`;

/** Parses malloc_info(3). Blocks in the caches of threads (tcache) count as used. */
export function parseMallocInfo(text: string): MallocBytes {
  const [, sums] = /<\/heap>\n(?!<heap)([\s\S]*)<\/malloc>/.exec(text) ?? [];
  if (sums === undefined) throw new Error(`not what malloc_info writes: ${text.slice(0, 80)}`);
  const size = (tag: string): number => {
    const [, bytes] = new RegExp(`<${tag}[^>]* size="(\\d+)"/>`).exec(sums) ?? [];
    if (bytes === undefined) throw new Error(`malloc_info has no ${tag}: ${sums.slice(0, 200)}`);
    return Number(bytes);
  };
  const free = size('total type="fast"') + size('total type="rest"');
  return { used: size('system type="current"') - free + size('total type="mmap"'), free };
}

/** Number of open descriptors by kind. */
export type DescriptorCounts = Readonly<Record<string, number>>;
const SOCKET_TABLES = ['tcp', 'tcp6', 'udp', 'udp6', 'unix'] as const;

const INODE_COLUMN: Readonly<Record<(typeof SOCKET_TABLES)[number], number>> = {
  tcp: 9,
  tcp6: 9,
  udp: 9,
  udp6: 9,
  unix: 6,
};

const LISTEN_STATE = '0A';

export function descriptorCounts(pid: number): DescriptorCounts {
  const links = readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return [readlinkSync(`/proc/${pid}/fd/${name}`)];
    } catch {
      return []; // the descriptor was closed after `readdirSync`
    }
  });
  const kinds = new Map<string, string>();
  for (const table of SOCKET_TABLES) addSocketKinds(kinds, table, readFileSync(`/proc/${pid}/net/${table}`, 'utf8'));
  return countDescriptorsByKind(links, kinds);
}

/** Counts descriptors by kind. A socket without a kind is in no table of the kernel, because its connection has ended. */
export function countDescriptorsByKind(
  links: readonly string[],
  socketKinds: ReadonlyMap<string, string>,
): DescriptorCounts {
  const counts: Record<string, number> = {};
  for (const link of links) {
    const [, inode] = /^socket:\[(\d+)\]$/.exec(link) ?? [];
    const [, kind] = /^(?:anon_inode:)?\[?([a-z]+)[\]:]/.exec(link) ?? [];
    const name = inode === undefined ? (kind ?? 'file') : (socketKinds.get(inode) ?? 'socket without peer');
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

export function addSocketKinds(kinds: Map<string, string>, table: (typeof SOCKET_TABLES)[number], text: string): void {
  for (const line of text.split('\n').slice(1)) {
    const fields = line.trim().split(/\s+/);
    const inode = fields[INODE_COLUMN[table]];
    if (inode === undefined) continue;
    const isListener = table.startsWith('tcp') && fields[3] === LISTEN_STATE;
    kinds.set(inode, isListener ? 'tcp listener' : table.replace('6', ''));
  }
}
