// Estimates how many bytes the entries of a Service take in the routing table. The estimates need no encoding, because most of them are
// made for entries that do not change.

import { utf8ByteLength } from '../message-text.ts';
import type { ServiceSettings } from '../settings/service-settings.ts';
import type { ErrorPages } from '../snapshot.ts';
import type { CertificateEntry, EndpointsEntry, ErrorPagesEntry } from '../table/entry.ts';

/** The bytes of an entry without its lists: ids, names, field names and messages. */
const ENTRY_BYTES = 250;
const SERVICE_BYTES = 600;
const PORT_BYTES = 120;
const LISTENER_BYTES = 250;
/** The bytes of an endpoint without its address and zones: the names of its fields and the port. */
const ENDPOINT_BYTES = 28;
const ZONE_BYTES = 10;

/** The content that a Service requests, and then keeps while its newer settings are refused. */
export interface AcceptedContent {
  readonly settings: ServiceSettings;
  readonly certificates: readonly CertificateEntry[];
  readonly errorPages: ErrorPagesEntry | null;
}

/** The number of a Service's ports, and the same number with each port counted once for each node. */
export interface PortCounts {
  readonly ports: number;
  readonly portsOnNodes: number;
}

/** Returns the estimated bytes of a Service's entry, its certificates, its error pages and its listeners. */
export function serviceBytes(parts: AcceptedContent, { ports, portsOnNodes }: PortCounts): number {
  return SERVICE_BYTES + contentBytes(parts) + ports * PORT_BYTES + portsOnNodes * LISTENER_BYTES;
}

/** Returns the estimated bytes of the settings, the certificates and the error pages of a Service. */
export function contentBytes({ settings, certificates, errorPages }: AcceptedContent): number {
  const bytes = settingsBytes(settings) + (errorPages === null ? 0 : errorPagesBytes(errorPages));
  return certificates.reduce((sum, certificate) => sum + certificateBytes(certificate), bytes);
}

const BYTES_BY_PAGES = new WeakMap<ErrorPages, number>();

function errorPagesBytes({ pages }: ErrorPagesEntry): number {
  const known = BYTES_BY_PAGES.get(pages);
  if (known !== undefined) return known;
  const bytes = ENTRY_BYTES + utf8ByteLength(JSON.stringify(pages));
  BYTES_BY_PAGES.set(pages, bytes);
  return bytes;
}

function certificateBytes({ chain, clientAuthorities, backendAuthorities, sealedKey, ocsp }: CertificateEntry): number {
  const optional = [clientAuthorities, backendAuthorities, sealedKey, ocsp?.response];
  return optional.reduce((sum: number, text) => sum + (text?.length ?? 0), ENTRY_BYTES + chain.length);
}

const BYTES_BY_SETTINGS = new WeakMap<ServiceSettings, number>();

function settingsBytes(settings: ServiceSettings): number {
  const known = BYTES_BY_SETTINGS.get(settings);
  if (known !== undefined) return known;
  const bytes = JSON.stringify(settings).length;
  BYTES_BY_SETTINGS.set(settings, bytes);
  return bytes;
}

/** Returns the estimated bytes of an entry with endpoints. */
export function endpointsBytes({ endpoints }: EndpointsEntry): number {
  return endpoints.reduce((sum, { address, zone, otherZones = [] }) => {
    const zones = zone === undefined ? otherZones : [zone, ...otherZones];
    return sum + zones.reduce((all, { length }) => all + ZONE_BYTES + length, ENDPOINT_BYTES + address.length);
  }, ENTRY_BYTES);
}
