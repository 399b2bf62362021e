// Leads clients from HTTP to HTTPS, as the Service asks: redirects, and Strict-Transport-Security.
import type { Route } from '@weir/model/data-plane';
import type { RequestHeadParser } from './h1/request-head.ts';
import { fieldLine } from './passes/byte-writer.ts';
import { writeRedirect } from './passes/redirect.ts';
import { dateText, output } from './worker-memory.ts';

/** 308, and not 301, because a client may repeat a request with 301 as GET and without its body (RFC 9110 §15.4.2, §15.4.9). */
export const REDIRECT_STATUS = 308;

/**
 * Replaces the output by a redirect to the same host and target at the HTTPS port. The connection ends after the redirect.
 * Returns false, and writes nothing, if the request names no host.
 */
export function writeHttpsRedirect(
  { fields, hostStart, hostEnd, targetForm, pathStart, targetEnd, minorVersion }: RequestHeadParser,
  port: number,
): boolean {
  if (hostStart === hostEnd) return false;
  const { bytes } = fields;
  output.at = 0;
  writeRedirect(output, {
    status: REDIRECT_STATUS,
    scheme: 'https',
    host: bytes.subarray(hostStart, hostEnd),
    port,
    target: bytes,
    // `OPTIONS *` concerns the whole host, and a URI has no asterisk-form.
    targetStart: targetForm === 'asterisk' ? targetEnd : pathStart,
    targetEnd,
    dateText: dateText(Date.now()),
    closes: true,
    clientMinorVersion: minorVersion,
  });
  return true;
}

type TlsSettings = NonNullable<Route['settings']['tls']>;

const HSTS_LINES = new WeakMap<TlsSettings, Uint8Array>();

/** Returns the line Strict-Transport-Security of the route's Service; undefined if the Service does not want the field. */
export function hstsLineFor({ settings: { tls } }: Pick<Route, 'settings'>): Uint8Array | undefined {
  if (tls?.hstsMaxAgeSeconds === undefined) return undefined;
  let line = HSTS_LINES.get(tls);
  if (line === undefined) {
    // RFC 6797 §6.1.1. Weir adds no `includeSubDomains`, because other hosts may belong to other tenants.
    line = fieldLine('Strict-Transport-Security', `max-age=${tls.hstsMaxAgeSeconds}`);
    HSTS_LINES.set(tls, line);
  }
  return line;
}
