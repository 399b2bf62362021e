// The proof that a successor of our own user listens: the kernel lets only the same user share a port (SO_REUSEPORT), and
// says of each listening socket whose it is. Without it any process on this host could talk a proxy into closing.
import { open } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { endianness } from 'node:os';
import type { SocketAddress } from '../tcp/transport.ts';

const TABLES = { 4: '/proc/net/tcp', 6: '/proc/net/tcp6' };
const LISTEN = '0A';
const CHUNK = 65_536;

export interface OwnListeners {
  readonly at: SocketAddress;
  /** How many sockets of this process listen there. */
  readonly sockets: number;
}

/** The first address where nobody of this user listens besides us; undefined: everywhere somebody does. */
export async function firstWithoutOther(own: readonly OwnListeners[]): Promise<SocketAddress | undefined> {
  const uid = process.getuid?.() ?? 0;
  const counts = { 4: new Map<string, number>(), 6: new Map<string, number>() };
  for (const family of [4, 6] as const) {
    if (own.some(({ at }) => familyOf(at) === family))
      counts[family] = countListeners(await listeningPart(TABLES[family]), uid);
  }
  return own.find(({ at, sockets }) => (counts[familyOf(at)].get(kernelAddress(at)) ?? 0) <= sockets)?.at;
}

/** Listening sockets of a user, by address as the kernel writes it; pure. */
export function countListeners(table: string, uid: number): Map<string, number> {
  const counts = new Map<string, number>();
  for (const line of table.split('\n')) {
    const [, local, , state, , , , owner] = line.trim().split(/\s+/);
    if (local === undefined || state !== LISTEN || Number(owner) !== uid) continue;
    counts.set(local, (counts.get(local) ?? 0) + 1);
  }
  return counts;
}

/** `0100007F:1F90`: words of 32 bits in the order of this machine. */
export function kernelAddress({ address, port }: SocketAddress): string {
  const bytes = isIPv6(address) ? bytesOfIPv6(address) : address.split('.').map(Number);
  const words = Array.from({ length: bytes.length / 4 }, (_, word) => bytes.slice(word * 4, word * 4 + 4));
  const ordered = words.flatMap((word) => (endianness() === 'LE' ? word.toReversed() : word));
  return `${ordered.map((byte) => hex(byte, 2)).join('')}:${hex(port, 4)}`;
}

/** Listening sockets come first; behind them may be a hundred thousand connections, which nobody needs to print. */
async function listeningPart(path: string): Promise<string> {
  const file = await open(path);
  try {
    let text = '';
    const chunk = Buffer.allocUnsafe(CHUNK);
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, CHUNK, null);
      if (bytesRead === 0) return text;
      text += chunk.toString('latin1', 0, bytesRead);
      const last = text.lastIndexOf('\n');
      const state = text
        .slice(text.lastIndexOf('\n', last - 1) + 1, last)
        .trim()
        .split(/\s+/)[3];
      if (state !== LISTEN && state !== 'st') return text;
    }
  } finally {
    await file.close();
  }
}

function familyOf({ address }: SocketAddress): 4 | 6 {
  return isIPv6(address) ? 6 : 4;
}

function bytesOfIPv6(address: string): number[] {
  // The URL parser writes any form (`::`, a trailing IPv4) in groups of hex digits.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = text.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = Array.from({ length: tail === undefined ? 0 : 8 - front.length - back.length }, () => '0');
  return [...front, ...zeros, ...back].flatMap((group) => {
    const word = Number.parseInt(group, 16);
    return [word >> 8, word & 255];
  });
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
