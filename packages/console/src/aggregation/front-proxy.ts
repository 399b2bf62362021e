import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { type Clock, errorMessage, type Logger, wait } from '@weir/runtime';
import { type AuthenticatedUser, authenticatedUser } from '../access/user.ts';
import type { ApiClient } from '../kubernetes/api-client.ts';

export interface FrontProxyOptions {
  readonly api: ApiClient;
  readonly clock: Clock;
  readonly log: Logger;
}

const CONFIG_MAP = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
/**
 * Time between two reads of the ConfigMap. A minute is enough, because old and new certificate authorities overlap for days in a rotation.
 */
const REFRESH_INTERVAL_MS = 60_000;
const RETRY_DELAY_MS = 10_000;

/**
 * Knows how the API server identifies itself when it forwards requests to aggregated APIs. Reads these settings every minute from the
 * ConfigMap kube-system/extension-apiserver-authentication.
 */
export class FrontProxy {
  readonly #options: FrontProxyOptions;
  readonly #closing = new AbortController();
  readonly #refreshing: Promise<void>;
  readonly #listeners = new Set<() => void>();
  #settings: FrontProxySettings | undefined;
  #lastWarning = '';

  constructor(options: FrontProxyOptions) {
    this.#options = options;
    this.#refreshing = this.#refreshUntilClosed();
  }

  /**
   * The settings that were read last. Undefined before the first read, and if the API server aggregates no APIs. User headers are ignored
   * while the settings are undefined.
   */
  get settings(): FrontProxySettings | undefined {
    return this.#settings;
  }

  /** Calls `listener` after each change of the certificate authorities. */
  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#refreshing;
  }

  async #refreshUntilClosed(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const isRead = await this.#read();
      await wait(clock, isRead ? REFRESH_INTERVAL_MS : RETRY_DELAY_MS, signal).catch(() => {});
    }
  }

  /** Reads the ConfigMap. If the read fails, keeps the old settings and resolves with false. */
  async #read(): Promise<boolean> {
    try {
      const { status, body } = await this.#options.api.send({ method: 'GET', path: CONFIG_MAP });
      if (status !== 200)
        throw new Error(`HTTP ${status} for ConfigMap kube-system/extension-apiserver-authentication`);
      const before = this.#settings?.ca;
      this.#settings = parseFrontProxySettings((body as { data?: Record<string, string> }).data ?? {});
      if (this.#settings?.ca !== before) for (const listener of this.#listeners) listener();
      this.#lastWarning = '';
      return true;
    } catch (error) {
      const reason = errorMessage(error);
      if (reason !== this.#lastWarning) this.#options.log.warn({ reason }, READ_FAILED_MESSAGE);
      this.#lastWarning = reason;
      return false;
    }
  }
}

const READ_FAILED_MESSAGE = 'failed to read the front proxy settings of the API server; retrying';

export interface FrontProxySettings {
  /** Certificates of the authorities that issue the API server's client certificate, as PEM. */
  readonly ca: string;
  readonly caCertificates: readonly X509Certificate[];
  /** Common names that the client certificate may have; all names are allowed if the list is empty. */
  readonly allowedNames: readonly string[];
  readonly userHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

/** Parses the data of the ConfigMap. Returns undefined if the API server aggregates no APIs. Throws on a malformed list or certificate. */
export function parseFrontProxySettings(data: Readonly<Record<string, string>>): FrontProxySettings | undefined {
  const ca = data['requestheader-client-ca-file'];
  if (!ca) return undefined;
  const list = (name: string): string[] => JSON.parse(data[`requestheader-${name}`] ?? '[]') as string[];
  const lower = (name: string): string[] => list(name).map((each) => each.toLowerCase());
  return {
    ca,
    caCertificates: parseCertificates(ca),
    allowedNames: list('allowed-names'),
    userHeaders: lower('username-headers'),
    uidHeaders: lower('uid-headers'),
    groupHeaders: lower('group-headers'),
    extraHeaderPrefixes: lower('extra-headers-prefix'),
  };
}

function parseCertificates(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  return blocks.map((text) => new X509Certificate(text));
}

/**
 * Returns the user for whom the API server forwards a request. Returns undefined if the request does not come from the API server or names
 * no user. The user headers count only with a client certificate of the API server, because every client can write these headers.
 */
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
 * Whether a current authority issued the client certificate, and the common name is allowed. Every request is checked, because an open
 * connection may have been accepted with an authority that a rotation has replaced.
 */
function isFrontProxyCertificate(
  certificate: X509Certificate,
  { caCertificates, allowedNames }: Pick<FrontProxySettings, 'caCertificates' | 'allowedNames'>,
): boolean {
  const isIssued = caCertificates.some((ca) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey));
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
    const prefix = extraHeaderPrefixes.find((candidate) => header.startsWith(candidate));
    if (prefix !== undefined) extra[decodeHeaderSuffix(header.slice(prefix.length))] = values;
  }
  return extra;
}

/**
 * Decodes the part of a header name that is a key of `extra`. The API server percent-encodes characters that header names must not contain.
 */
function decodeHeaderSuffix(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
