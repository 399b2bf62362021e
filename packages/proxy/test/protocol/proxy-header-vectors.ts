// PROXY headers, and how a receiver must treat each header. They come from the specification and from tests of other
// projects; the field `source` names the origin.
import { readFileSync } from 'node:fs';

export interface ProxyHeaderVector {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly expect: string;
  /** The client, as `address:port`. */
  readonly src?: string;
  readonly dst?: string;
  readonly payload?: string;
  /** The sizes of the segments in which the test of the other project sends the header. */
  readonly chunks?: readonly number[];
}

const FILE = new URL('../vectors/proxy-protocol.jsonl', import.meta.url);

export const PROXY_HEADER_VECTORS: readonly ProxyHeaderVector[] = readFileSync(FILE, 'utf8')
  .trim()
  .split('\n')
  .map((line) => {
    const row = JSON.parse(line);
    return {
      ...row,
      bytes: row.hex === undefined ? Buffer.from(row.base64, 'base64') : Buffer.from(row.hex, 'hex'),
      payload: row.payload_after_header,
      chunks: row.write_chunks,
    };
  });
