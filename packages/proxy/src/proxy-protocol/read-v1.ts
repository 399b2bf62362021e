// 2.1: one line of text, such as `PROXY TCP4 192.0.2.1 198.51.100.1 56324 443\r\n`.

import { formatIp, isUnicast, parseIp } from './ip-bytes.ts';
import { invalid, type ProxyHeaderParseResult } from './proxy-header.ts';

export const V1_PREFIX: Uint8Array = Buffer.from('PROXY', 'latin1');

/** The longest line that any field can make, CRLF included. */
export const MAX_V1_BYTES = 107;

const CR = 13;
const LF = 10;
const V1_UNKNOWN_PREFIX = 'PROXY UNKNOWN';
const PORT_PATTERN = /^(0|[1-9][0-9]{0,4})$/;

/** Of bytes that begin with `PROXY`. */
export function parseV1(bytes: Uint8Array): 'more' | ProxyHeaderParseResult {
  const most = Math.min(bytes.length, MAX_V1_BYTES);
  for (let at = V1_PREFIX.length; at < most; at += 1) {
    const isAfterCr = bytes[at - 1] === CR;
    const isLf = bytes[at] === LF;
    if (isAfterCr && isLf) return parseV1Line(latin1Text(bytes, at - 1), at + 1);
    // A lone CR or LF must not be taken for the end of the line; of UNKNOWN everything before CRLF is ignored.
    const isLone = isAfterCr !== isLf;
    if (isLone && !latin1Text(bytes, at).startsWith(V1_UNKNOWN_PREFIX)) return invalid('line-end');
  }
  return bytes.length < MAX_V1_BYTES ? 'more' : invalid('too-long');
}

function latin1Text(bytes: Uint8Array, end: number): string {
  return String.fromCharCode(...bytes.subarray(0, end));
}

function parseV1Line(line: string, length: number): ProxyHeaderParseResult {
  const header = { version: 'v1', command: 'PROXY', tlvs: [], length } as const;
  if (line === V1_UNKNOWN_PREFIX || line.startsWith(`${V1_UNKNOWN_PREFIX} `)) {
    return { kind: 'header', header: { ...header, family: 'UNKNOWN', addresses: null } };
  }
  const fields = line.split(' ');
  const [, family, source = '', destination = '', sourcePort = '', destinationPort = ''] = fields;
  if (family !== 'TCP4' && family !== 'TCP6') return invalid('protocol');
  if (fields.length !== 6) return invalid('fields');
  const size = family === 'TCP4' ? 4 : 16;
  const from = parseIp(source);
  const to = parseIp(destination);
  // The family dictates the format: no IPv4 text in TCP6.
  if (from?.length !== size || to?.length !== size) return invalid('address');
  if (!isPort(sourcePort) || !isPort(destinationPort)) return invalid('port');
  if (!isUnicast(from) || !isUnicast(to)) return invalid('not-unicast');
  const addresses = {
    source: { address: formatIp(from), port: Number(sourcePort) },
    destination: { address: formatIp(to), port: Number(destinationPort) },
  };
  return { kind: 'header', header: { ...header, family, addresses } };
}

function isPort(text: string): boolean {
  return PORT_PATTERN.test(text) && Number(text) <= 65_535;
}
