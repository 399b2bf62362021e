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
/** A rotation overlaps by days. */
const REFRESH_INTERVAL_MS = 60_000;
const RETRY_DELAY_MS = 10_000;

/** What the API server shows as a front proxy, kept up to date. */
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

  /** Undefined: not known yet, or there is none; nobody may say then for whom they ask. */
  get settings(): FrontProxySettings | undefined {
    return this.#settings;
  }

  /** Called when other authorities count. */
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
      const isKnown = await this.#read();
      await wait(clock, isKnown ? REFRESH_INTERVAL_MS : RETRY_DELAY_MS, signal).catch(() => {});
    }
  }

  /** What was known goes on when it cannot be read. */
  async #read(): Promise<boolean> {
    try {
      const { status, body } = await this.#options.api.send('GET', CONFIG_MAP);
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

const READ_FAILED_MESSAGE =
  'how the API server signs in as a front proxy cannot be read; the console as an aggregated API waits for it';

// What the API server says of itself as the front proxy of aggregated APIs: the ConfigMap kube-system/extension-apiserver-authentication.
export interface FrontProxySettings {
  /** PEM, all of them. */
  readonly ca: string;
  readonly caCertificates: readonly X509Certificate[];
  /** Common names that its certificate may have; empty: any. */
  readonly allowedNames: readonly string[];
  readonly userHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

/** Undefined: this API server aggregates nothing. Throws when it says what cannot be read. */
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
  const found = pem.match(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/gs) ?? [];
  return found.map((text) => new X509Certificate(text));
}

// Whom the API server forwards a request for. The headers say it, and anybody can write headers: they count only from a client that
// has proved by TLS that it holds the key of a certificate which the front proxy's authority issued.

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
