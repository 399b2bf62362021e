import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** How many of each kind a process has open. */
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
      return []; // closed meanwhile
    }
  });
  const kinds = new Map<string, string>();
  for (const table of SOCKET_TABLES) addSocketKinds(kinds, table, readFileSync(`/proc/${pid}/net/${table}`, 'utf8'));
  return countDescriptorsByKind(links, kinds);
}

/** A socket that no table knows any more is closed for the kernel, and still held by the process. */
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
