// Messages of HTTP/1.1 and how a receiver must treat them. They come from RFCs, reports of vulnerabilities and tests of
// other projects; the field `source` or `file` names the origin.
import { readFileSync } from 'node:fs';

export interface MessageVector {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly expect: string;
}

export interface LlhttpVector extends MessageVector {
  /** `request` or `response`, and a suffix if the case is for a lenient parser. */
  readonly type: string;
  readonly messages: number;
  readonly bodies: readonly string[];
}

export const REQUEST_VECTORS: readonly MessageVector[] = rowsOf('h1-requests.jsonl').map(messageVector);
export const RESPONSE_VECTORS: readonly MessageVector[] = rowsOf('h1-upstream-responses.jsonl').map(messageVector);
/** The test cases of llhttp 9.4.2, with the outcome of llhttp. */
export const LLHTTP_VECTORS: readonly LlhttpVector[] = rowsOf('llhttp-9.4.2.jsonl').map((row) => ({
  ...messageVector(row),
  type: String(row.type),
  messages: Number(row.messages_complete),
  bodies: row.bodies as readonly string[],
}));

type Row = Readonly<Record<string, unknown>>;

function rowsOf(name: string): readonly Row[] {
  const file = new URL(`../../vectors/${name}`, import.meta.url);
  return readFileSync(file, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

function messageVector(row: Row): MessageVector {
  return { id: String(row.id), bytes: Buffer.from(String(row.base64), 'base64'), expect: String(row.expect) };
}
