import { randomBytes } from 'node:crypto';
import type { ServiceSettings } from '@weir/model/data-plane';
import { writeProxyHeader } from '../proxy-protocol/write-proxy-header.ts';
import type { DownstreamInfo } from './arrived.ts';

/** As the specification allows (2.2.5), and enough never to repeat. */
const UNIQUE_ID_BYTES = 16;

/** What the endpoint gets before anything is relayed: who the client is, if it wants to know, and what was read already. */
export function upstreamPreambleFor({ proxyProtocol }: ServiceSettings, arrived: DownstreamInfo): Uint8Array {
  const { client, destination, serverName, tls, prereadBytes } = arrived;
  if (proxyProtocol === null) return prereadBytes;
  const header = writeProxyHeader(proxyProtocol, {
    source: { address: client.address, port: client.port },
    destination: { address: destination.address, port: destination.port },
    ...(proxyProtocol === 'v2' ? { uniqueId: randomBytes(UNIQUE_ID_BYTES) } : {}),
    ...(serverName === null ? {} : { authority: serverName }),
    ...(tls === undefined ? {} : { alpn: tls.alpn ?? undefined, tls }),
  });
  return prereadBytes.length === 0 ? header : Buffer.concat([header, prereadBytes]);
}
