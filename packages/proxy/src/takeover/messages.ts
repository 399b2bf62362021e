import type { Socket } from 'node:net';
import { isTablePosition, type ListenerKey, type TablePosition } from '@weir/model/data-plane';
import { parseJsonObject } from '../supervisor/json-object.ts';

// The messages that two proxies of one node exchange over the node's lock, one JSON object per line. Any process of
// this host can connect to the lock, because the lock is an abstract Unix socket. A proxy therefore asks the kernel
// whether a successor really listens (see shared-listeners.ts).

/** A message from a proxy that waits for the node to the proxy that serves the node. */
export type TakeoverRequest =
  /** The sender supports takeovers. */
  | { readonly kind: 'hello' }
  /** The sender could serve now, with the table at position `applied`. */
  | { readonly kind: 'ready'; readonly applied: TablePosition }
  /** The sender listens on every listener of the reply `join` that is still in the table. */
  | { readonly kind: 'listening' }
  /** The sender could not open all listeners; the predecessor continues to serve. */
  | { readonly kind: 'abandon' };

/** A message from the proxy that serves the node to a waiting proxy. */
export type TakeoverReply =
  /** The predecessor is about to end. A successor that can serve should send `ready`. */
  | { readonly kind: 'leaving' }
  /** The successor may not take over yet, and should ask again later. */
  | { readonly kind: 'wait' }
  /** The successor should open all listeners of its table. `open` lists the listeners that the predecessor has open. */
  | { readonly kind: 'join'; readonly open: readonly ListenerKey[] }
  /** The successor does not listen on every address on which the predecessor listens. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** The predecessor has closed its listeners and released the lock. */
  | { readonly kind: 'yours' };

export function parseTakeoverRequest(line: string): TakeoverRequest | undefined {
  const message = parseJsonObject(line);
  switch (message?.kind) {
    case 'hello':
    case 'listening':
    case 'abandon':
      return { kind: message.kind };
    case 'ready':
      return isTablePosition(message.applied) ? { kind: 'ready', applied: message.applied } : undefined;
    default:
      return undefined;
  }
}

export function parseTakeoverReply(line: string): TakeoverReply | undefined {
  const message = parseJsonObject(line);
  switch (message?.kind) {
    case 'leaving':
    case 'wait':
    case 'yours':
      return { kind: message.kind };
    case 'join':
      return isStringArray(message.open) ? { kind: 'join', open: message.open } : undefined;
    case 'refused':
      return typeof message.reason === 'string' ? { kind: 'refused', reason: message.reason } : undefined;
    default:
      return undefined;
  }
}

function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** The maximum length of a request. */
export const MAX_REQUEST_CHARACTERS = 4_096;
/** The maximum length of a reply, with room for the keys of 100,000 listeners. */
export const MAX_REPLY_CHARACTERS = 8_388_608;

/** Calls `onLine` for each line that the socket receives. Destroys the socket if a line is longer than `maxCharacters`. */
export function readLines(socket: Socket, maxCharacters: number, onLine: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > maxCharacters) socket.destroy();
    for (const line of lines) if (!socket.destroyed) onLine(line);
  });
}

export function writeLine(socket: Socket, value: object): void {
  if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
}
