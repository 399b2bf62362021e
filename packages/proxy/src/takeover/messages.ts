import type { Socket } from 'node:net';
import { isTablePosition, type ListenerKey, type TablePosition } from '@weir/model/data-plane';
import { parseJsonObject } from '../supervisor/json-object.ts';

// What two proxies of one node say to each other over the lock of the node: lines of JSON. The socket is abstract, so any
// process of this host may be at the other end; nothing it says is believed that it cannot show (see beside-us.ts).

/** Of one that waits, to the one that serves. */
export type TakeoverRequest =
  /** I know how to take over. */
  | { readonly kind: 'hello' }
  /** I could serve this table now. */
  | { readonly kind: 'ready'; readonly applied: TablePosition }
  /** I listen on all that you named and that is still wanted. */
  | { readonly kind: 'listening' }
  /** I cannot; go on serving. */
  | { readonly kind: 'abandon' };

/** Of the one that serves. */
export type TakeoverReply =
  /** I am about to end: whoever can serve should say so. */
  | { readonly kind: 'leaving' }
  /** Not now; ask again. */
  | { readonly kind: 'wait' }
  /** Listen beside me, on these and on whatever else the table says. */
  | { readonly kind: 'join'; readonly open: readonly ListenerKey[] }
  /** You do not listen where you should. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** I listen nowhere any more, and the lock is free. */
  | { readonly kind: 'yours' };

export function parseTakeoverRequest(line: string): TakeoverRequest | undefined {
  const said = parseJsonObject(line);
  switch (said?.kind) {
    case 'hello':
    case 'listening':
    case 'abandon':
      return { kind: said.kind };
    case 'ready':
      return isTablePosition(said.applied) ? { kind: 'ready', applied: said.applied } : undefined;
    default:
      return undefined;
  }
}

export function parseTakeoverReply(line: string): TakeoverReply | undefined {
  const said = parseJsonObject(line);
  switch (said?.kind) {
    case 'leaving':
    case 'wait':
    case 'yours':
      return { kind: said.kind };
    case 'join':
      return isStringArray(said.open) ? { kind: 'join', open: said.open } : undefined;
    case 'refused':
      return typeof said.reason === 'string' ? { kind: 'refused', reason: said.reason } : undefined;
    default:
      return undefined;
  }
}

function isStringArray(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

/** As long as the list of a hundred thousand listeners. */
const MAX_LINE_CHARACTERS = 8_388_608;

/** Tells each line that arrives. A peer that sends more without an end of line is cut off. */
export function readLines(socket: Socket, onLine: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_CHARACTERS) socket.destroy();
    for (const line of lines) if (!socket.destroyed) onLine(line);
  });
}

export function writeLine(socket: Socket, value: object): void {
  if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
}
