import type { ProxyHeaderRead } from './proxy-header.ts';
import { LONGEST_V1, readV1, V1_PREFIX } from './read-v1.ts';
import { readV2, V2_PREAMBLE, V2_SIGNATURE, v2Length } from './read-v2.ts';

const NONE: ProxyHeaderRead = { kind: 'none' };

/**
 * What these bytes, the first of a connection, begin with; `more` when they do not say it yet. Looks at no byte beyond the
 * header. Law: once it is known for some bytes, it is the same for whatever follows them.
 */
export function readProxyHeader(bytes: Uint8Array): 'more' | ProxyHeaderRead {
  const prefix = bytes[0] === V1_PREFIX[0] ? V1_PREFIX : V2_SIGNATURE;
  const shared = Math.min(bytes.length, prefix.length);
  for (let index = 0; index < shared; index += 1) if (bytes[index] !== prefix[index]) return NONE;
  if (bytes.length <= prefix.length) return 'more';
  return prefix === V1_PREFIX ? readV1(bytes) : readV2(bytes);
}

/** How long these bytes, which need more, may become before they say how long the header is, or are it. */
export function bytesWanted(bytes: Uint8Array): number {
  if (bytes[0] === V1_PREFIX[0]) return LONGEST_V1;
  return bytes.length < V2_PREAMBLE ? V2_PREAMBLE : v2Length(bytes);
}
