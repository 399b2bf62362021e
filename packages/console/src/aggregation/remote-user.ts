// Whom the API server forwards a request for. The headers say it, and anybody can write headers: they count only from a client that
// has proved by TLS that it holds the key of a certificate which the front proxy's authority issued.
import type { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { type AuthenticatedUser, authenticatedUser } from '../access/user.ts';
import type { FrontProxySettings } from './front-proxy-settings.ts';

/** Undefined: it does not come from the API server, or names nobody. */
export function forwardedUser(request: IncomingMessage, settings: FrontProxySettings): AuthenticatedUser | undefined {
  const { socket, headersDistinct: headers } = request;
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined || !isFrontProxyCertificate(certificate, settings)) return undefined;
  const first = (names: readonly string[]): string => names.flatMap((name) => headers[name] ?? [])[0] ?? '';
  const name = first(settings.userHeaders);
  if (name === '') return undefined;
  const groups = settings.groupHeaders.flatMap((header) => headers[header] ?? []);
  return authenticatedUser({
    name,
    uid: first(settings.uidHeaders),
    groups,
    extra: extraFromHeaders(headers, settings),
  });
}

/**
 * Asked of each request, by the authorities of now: a connection may be older than a rotation, and its handshake was checked by those of
 * then.
 */
function isFrontProxyCertificate(
  certificate: X509Certificate,
  { caCertificates, allowedNames }: Pick<FrontProxySettings, 'caCertificates' | 'allowedNames'>,
): boolean {
  const isIssued = caCertificates.some((each) => certificate.checkIssued(each) && certificate.verify(each.publicKey));
  if (!isIssued) return false;
  return allowedNames.length === 0 || allowedNames.includes(commonName(certificate));
}

function commonName({ subject }: X509Certificate): string {
  const names = subject.split('\n').filter((line) => line.startsWith('CN='));
  return names.length === 1 ? (names[0]?.slice('CN='.length) ?? '') : '';
}

function extraFromHeaders(
  headers: NodeJS.Dict<string[]>,
  { extraHeaderPrefixes }: Pick<FrontProxySettings, 'extraHeaderPrefixes'>,
): Record<string, readonly string[]> {
  const extra: Record<string, readonly string[]> = {};
  for (const [header, values = []] of Object.entries(headers)) {
    const prefix = extraHeaderPrefixes.find((each) => header.startsWith(each));
    if (prefix !== undefined) extra[decodeHeaderSuffix(header.slice(prefix.length))] = values;
  }
  return extra;
}

/** Keys of extra come percent-encoded, as far as a header's name could not hold them. */
function decodeHeaderSuffix(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
