// Checks that another process of the same user listens on every address of this proxy. The kernel lets only processes
// of one user share a port (SO_REUSEPORT), and lists the user of each listening socket in /proc/net. Without this
// check, any process of the host could make a proxy close its listeners.
import { open } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { endianness } from 'node:os';
import { ipv6Bytes, type Protocol } from '@weir/model/data-plane';
import type { SocketAddress } from '../transport/tcp-transport.ts';

const PROC_NET_FILES = {
  TCP: { 4: '/proc/net/tcp', 6: '/proc/net/tcp6' },
  UDP: { 4: '/proc/net/udp', 6: '/proc/net/udp6' },
};
/**
 * The values of the state column in /proc/net for listening sockets. An unconnected UDP socket is listed as closed
 * (07).
 */
const LISTEN_STATES = { TCP: '0A', UDP: '07' };
const READ_CHUNK_BYTES = 65_536;

export interface OwnListener {
  readonly protocol: Protocol;
  readonly at: SocketAddress;
  /** How many sockets of this process listen on this address. */
  readonly sockets: number;
}

/** Returns the first listener that no other process of this user shares, or undefined if all are shared. */
export async function findUnsharedListener(own: readonly OwnListener[]): Promise<OwnListener | undefined> {
  const tables = new Map<string, Map<string, number>>();
  for (const { protocol, at } of own) {
    const path = PROC_NET_FILES[protocol][familyOf(at)];
    if (!tables.has(path)) tables.set(path, await countListeners(path, protocol));
  }
  return own.find(({ protocol, at, sockets }) => {
    const counts = tables.get(PROC_NET_FILES[protocol][familyOf(at)]);
    return (counts?.get(procNetAddress(at)) ?? 0) <= sockets;
  });
}

/**
 * Counts this user's listening sockets per local address. The keys are local addresses in the format of /proc/net (see
 * `procNetAddress`).
 */
async function countListeners(path: string, protocol: Protocol): Promise<Map<string, number>> {
  const uid = process.getuid?.() ?? 0;
  const counts = new Map<string, number>();
  for await (const lines of linesOf(path)) {
    let isListening = false;
    for (const line of lines) {
      const [, local = '', , state, , , , owner] = line.trim().split(/\s+/);
      isListening = state === LISTEN_STATES[protocol] || state === 'st';
      if (state === LISTEN_STATES[protocol] && Number(owner) === uid) counts.set(local, (counts.get(local) ?? 0) + 1);
    }
    // Stops after the listening TCP sockets, which come first. Otherwise the kernel would also print the connections,
    // of which there may be 100,000.
    if (protocol === 'TCP' && !isListening) break;
  }
  return counts;
}

/**
 * Returns an address in the format of /proc/net: 32-bit words in the byte order of this machine, and the port. On a
 * little-endian machine, 127.0.0.1:8080 is `0100007F:1F90`.
 */
export function procNetAddress({ address, port }: SocketAddress): string {
  const bytes = isIPv6(address) ? [...ipv6Bytes(address)] : address.split('.').map(Number);
  const words = Array.from({ length: bytes.length / 4 }, (_, word) => bytes.slice(word * 4, word * 4 + 4));
  const ordered = words.flatMap((word) => (endianness() === 'LE' ? word.toReversed() : word));
  return `${ordered.map((byte) => hex(byte, 2)).join('')}:${hex(port, 4)}`;
}

/** Yields the complete lines of a file, in batches of at least one line. */
async function* linesOf(path: string): AsyncIterable<string[]> {
  const file = await open(path);
  try {
    let rest = '';
    const chunk = Buffer.allocUnsafe(READ_CHUNK_BYTES);
    for (;;) {
      const { bytesRead } = await file.read(chunk, 0, READ_CHUNK_BYTES, null);
      if (bytesRead === 0) return;
      const lines = (rest + chunk.toString('latin1', 0, bytesRead)).split('\n');
      rest = lines.pop() ?? '';
      if (lines.length > 0) yield lines;
    }
  } finally {
    await file.close();
  }
}

function familyOf({ address }: SocketAddress): 4 | 6 {
  return isIPv6(address) ? 6 : 4;
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
