// What the clients of a demo tenant did, by their own count.
import type { Socket } from 'node:net';

export interface TrafficCount {
  /** Bytes that the clients sent, and got. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  readonly connections: number;
  /** What was tried and did not end as it should. */
  readonly failures: readonly string[];
}

export interface Traffic {
  count(): TrafficCount;
  /** No more; resolves once every connection is closed. */
  stop(): Promise<void>;
}

export interface TrafficTarget {
  /** The addresses that the Service was given. */
  readonly addresses: readonly string[];
  readonly port: number;
}

/** The addresses in turn, as DNS would give them. */
export function roundRobin(addresses: readonly string[]): () => string {
  let next = 0;
  return () => {
    const address = addresses[next % addresses.length] ?? '';
    next += 1;
    return address;
  };
}

/** Resolves at the end of a connection, however it ends. */
export function untilClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once('close', () => resolve());
  });
}
