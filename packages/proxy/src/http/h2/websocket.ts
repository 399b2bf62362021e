// The opening handshake of a WebSocket whose client speaks HTTP/2 (RFC 8441) and whose endpoint speaks HTTP/1.1 (RFC
// 6455 §4). The proxy sends the HTTP/1.1 handshake with a key of its own.
import { createHash } from 'node:crypto';
import { SWITCHING_PROTOCOLS } from '../current-request.ts';
import type { HeadFields } from '../h1/head-fields.ts';
import { asciiBytes, fieldLine } from '../passes/byte-writer.ts';
import { isSameName } from '../passes/head-edit.ts';
import type { ResponseHead } from '../passes/response-passes.ts';
import { fillRandom } from '../worker-memory.ts';

/** RFC 6455 §1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const KEY_BYTES = 16;
export const ACCEPT_NAME: Uint8Array = asciiBytes('sec-websocket-accept');

export interface WebSocketKey {
  /** The line Sec-WebSocket-Key that the endpoint receives. */
  readonly line: Uint8Array;
  /** The value of Sec-WebSocket-Accept that the endpoint must answer. */
  readonly accept: string;
}

export function newWebSocketKey(): WebSocketKey {
  const random = new Uint8Array(KEY_BYTES);
  fillRandom(random);
  const key = Buffer.from(random).toString('base64');
  return {
    line: fieldLine('Sec-WebSocket-Key', key),
    accept: createHash('sha1')
      .update(key + GUID)
      .digest('base64'),
  };
}

/**
 * Whether an answer of the endpoint may reach the client. `key` is undefined if the client does not ask for a
 * WebSocket. RFC 8441 §5: to a client that asks, 2xx means what 101 means in HTTP/1.1, so no other 2xx may reach this
 * client.
 */
export function mayAnswer(
  { status, fields }: Pick<ResponseHead, 'status' | 'fields'>,
  key: WebSocketKey | undefined,
): boolean {
  if (status === SWITCHING_PROTOCOLS) return key !== undefined && acceptsKey(fields, key);
  return key === undefined || status < 200 || status >= 300;
}

/** Whether an answer 101 accepts the key. RFC 6455 §4.1: otherwise the connection must fail. */
function acceptsKey(fields: HeadFields, { accept }: WebSocketKey): boolean {
  const { bytes, count, nameStart, nameEnd } = fields;
  let accepted = 0;
  for (let index = 0; index < count; index += 1) {
    const start = nameStart[index] as number;
    if ((nameEnd[index] as number) - start !== ACCEPT_NAME.length || !isSameName(bytes, start, ACCEPT_NAME)) continue;
    if (fields.valueText(index) !== accept) return false;
    accepted += 1;
  }
  return accepted === 1;
}
