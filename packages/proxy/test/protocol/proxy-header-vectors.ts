// Wire bytes of PROXY headers, and what a receiver should make of them: from the specification and from the cases of other
// projects (`source` says which).
import { readFileSync } from 'node:fs';

export interface ProxyHeaderVector {
  readonly id: string;
  readonly bytes: Uint8Array;
  readonly expect: string;
  /** `address:port`. */
  readonly src?: string;
  readonly dst?: string;
  readonly payload?: string;
  /** Lengths of the segments in which it was sent. */
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
