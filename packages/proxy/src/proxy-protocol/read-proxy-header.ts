import type { ProxyHeaderParseResult } from './proxy-header.ts';
import { MAX_V1_BYTES, parseV1, V1_PREFIX } from './read-v1.ts';
import { parseV2, V2_PREAMBLE_BYTES, V2_SIGNATURE, v2Length } from './read-v2.ts';

const NO_HEADER: ProxyHeaderParseResult = { kind: 'none' };

/**
 * What these bytes, the first of a connection, begin with; `more` when they do not say it yet. Looks at no byte beyond the
 * header. Law: once it is known for some bytes, it is the same for whatever follows them.
 */
export function parseProxyHeader(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const prefix = bytes[0] === V1_PREFIX[0] ? V1_PREFIX : V2_SIGNATURE;
  const shared = Math.min(bytes.length, prefix.length);
  for (let index = 0; index < shared; index += 1) if (bytes[index] !== prefix[index]) return NO_HEADER;
  if (bytes.length <= prefix.length) return 'more';
  return prefix === V1_PREFIX ? parseV1(bytes) : parseV2(bytes);
}

/** How long these bytes, which need more, may become before they say how long the header is, or are it. */
export function bytesNeeded(bytes: Uint8Array): number {
  if (bytes[0] === V1_PREFIX[0]) return MAX_V1_BYTES;
  return bytes.length < V2_PREAMBLE_BYTES ? V2_PREAMBLE_BYTES : v2Length(bytes);
}
