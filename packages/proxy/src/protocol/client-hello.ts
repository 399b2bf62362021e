import { isIP } from 'node:net';

/** The fields of a ClientHello (RFC 8446 §4.1.2) that can be used for routing before anything is decrypted. */
export interface ClientHello {
  /**
   * The `host_name` (RFC 6066 §3) in lower case, without a trailing dot. Null if the client sends no name or an IP
   * address. With Encrypted ClientHello (ECH), this is the outer name.
   */
  readonly serverName: string | null;
  /** The offered ALPN protocols (RFC 7301) in the client's order, decoded as Latin-1. */
  readonly alpn: readonly string[];
  /** The offered TLS versions in the client's order, without GREASE values. 0x0304 is TLS 1.3. */
  readonly versions: readonly number[];
}

/** The fields of a ClientHello that show which certificates the client can use. */
export interface CertificateRequest extends Pick<ClientHello, 'serverName' | 'versions'> {
  /** The offered cipher suites in the client's order. */
  readonly cipherSuites: readonly number[];
  /** The signature algorithms that the client accepts (RFC 8446 §4.2.3), preferred first. Empty if the client names none. */
  readonly signatureAlgorithms: readonly number[];
  /** The groups that the client supports (RFC 8446 §4.2.7), preferred first. Empty if the client names none. */
  readonly groups: readonly number[];
}

export type ClientHelloFault =
  | 'not-tls'
  /** The ClientHello of SSL 2, which RFC 8446 appendix D.5 forbids. */
  | 'ssl2'
  | 'too-large'
  /** The first message is not a ClientHello, or another message follows in the same record. */
  | 'unexpected-message'
  | 'malformed'
  /** `server_name` is not a valid host name. */
  | 'bad-server-name';

const SERVER_NAME_EXTENSION = 0;
const SUPPORTED_GROUPS_EXTENSION = 10;
const SIGNATURE_ALGORITHMS_EXTENSION = 13;
const ALPN_EXTENSION = 16;
const SUPPORTED_VERSIONS_EXTENSION = 43;
const HOST_NAME_TYPE = 0;
const RANDOM_BYTES = 32;
const MAX_SESSION_ID_BYTES = 32;

/** Parses the body of a ClientHello (RFC 8446 §4.1.2). Returns a fault if the ClientHello is refused. */
export function parseClientHello(body: Uint8Array): ClientHello | ClientHelloFault {
  const parts = splitBody(body);
  return parts === undefined ? 'malformed' : clientHelloFrom(parts);
}

/** Parses the body of a ClientHello for the choice of a certificate. Returns undefined if the ClientHello is not valid. */
export function parseCertificateRequest(body: Uint8Array): CertificateRequest | undefined {
  const parts = splitBody(body);
  const hello = parts && clientHelloFrom(parts);
  if (parts === undefined || hello === undefined || typeof hello === 'string') return undefined;
  const signatureAlgorithms = readNumberList(parts.extensions.get(SIGNATURE_ALGORITHMS_EXTENSION));
  const groups = readNumberList(parts.extensions.get(SUPPORTED_GROUPS_EXTENSION));
  if (signatureAlgorithms === undefined || groups === undefined) return undefined;
  const { serverName, versions } = hello;
  return { serverName, versions, cipherSuites: readNumbers(parts.suites), signatureAlgorithms, groups };
}

interface ClientHelloParts {
  readonly version: number;
  readonly suites: ByteCursor;
  readonly extensions: ReadonlyMap<number, ByteCursor>;
}

/** Returns undefined if the body is malformed. */
function splitBody(body: Uint8Array): ClientHelloParts | undefined {
  const cursor = new ByteCursor(body);
  const version = cursor.uint(2);
  const hasRandom = cursor.skip(RANDOM_BYTES);
  const sessionId = cursor.vector(1);
  const suites = cursor.vector(2);
  const compressions = cursor.vector(1);
  if (version === undefined || version >> 8 !== 3 || !hasRandom) return undefined;
  if (sessionId === undefined || sessionId.remaining > MAX_SESSION_ID_BYTES) return undefined;
  if (suites === undefined || suites.remaining === 0 || suites.remaining % 2 !== 0) return undefined;
  if (compressions === undefined || compressions.remaining === 0) return undefined;
  const extensions = readExtensions(cursor);
  return extensions === undefined ? undefined : { version, suites, extensions };
}

/**
 * Returns the extensions by type, or undefined if they are malformed or a type occurs twice. RFC 8446 §4.2 forbids two
 * extensions of one type. Weir might use the first and the endpoint the second.
 */
function readExtensions(message: ByteCursor): ReadonlyMap<number, ByteCursor> | undefined {
  const found = new Map<number, ByteCursor>();
  // TLS 1.2 and older allow a ClientHello without the extensions field.
  if (message.remaining === 0) return found;
  const extensions = message.vector(2);
  if (extensions === undefined || message.remaining > 0) return undefined;
  while (extensions.remaining > 0) {
    const type = extensions.uint(2);
    const data = extensions.vector(2);
    if (type === undefined || data === undefined || found.has(type)) return undefined;
    found.set(type, data);
  }
  return found;
}

function clientHelloFrom({ version, extensions }: ClientHelloParts): ClientHello | ClientHelloFault {
  const name = readServerName(extensions.get(SERVER_NAME_EXTENSION));
  const alpn = readAlpn(extensions.get(ALPN_EXTENSION));
  const versions = readVersions(extensions.get(SUPPORTED_VERSIONS_EXTENSION), version);
  if (name === undefined || alpn === undefined || versions === undefined) return 'malformed';
  const serverName = name === null ? null : parseHostName(name);
  return serverName === undefined ? 'bad-server-name' : { serverName, alpn, versions };
}

/**
 * Returns the server name, null if there is no `server_name` extension, or undefined if the extension is malformed. RFC
 * 6066 §3 allows one name per type and defines only one type.
 */
function readServerName(extension: ByteCursor | undefined): string | null | undefined {
  if (extension === undefined) return null;
  const list = extension.vector(2);
  const type = list?.uint(1);
  const name = list?.vector(2);
  if (type !== HOST_NAME_TYPE || name === undefined || name.remaining === 0) return undefined;
  return list?.remaining === 0 && extension.remaining === 0 ? name.text() : undefined;
}

function readAlpn(extension: ByteCursor | undefined): readonly string[] | undefined {
  if (extension === undefined) return [];
  const list = extension.vector(2);
  if (list === undefined || list.remaining === 0 || extension.remaining > 0) return undefined;
  const protocols: string[] = [];
  while (list.remaining > 0) {
    const protocol = list.vector(1);
    if (protocol === undefined || protocol.remaining === 0) return undefined;
    protocols.push(protocol.text());
  }
  return protocols;
}

function readVersions(extension: ByteCursor | undefined, legacy: number): readonly number[] | undefined {
  if (extension === undefined) return [legacy];
  const list = extension.vector(1);
  if (list === undefined || list.remaining === 0 || list.remaining % 2 !== 0 || extension.remaining > 0)
    return undefined;
  const versions: number[] = [];
  for (let version = list.uint(2); version !== undefined; version = list.uint(2)) {
    if (!isGrease(version)) versions.push(version);
  }
  return versions;
}

/** Returns the numbers of an extension that is one list, or undefined if the extension is malformed. */
function readNumberList(extension: ByteCursor | undefined): readonly number[] | undefined {
  if (extension === undefined) return [];
  const list = extension.vector(2);
  if (list === undefined || list.remaining === 0 || list.remaining % 2 !== 0 || extension.remaining > 0)
    return undefined;
  return readNumbers(list);
}

/** Reads the two-byte numbers up to the end. */
function readNumbers(cursor: ByteCursor): readonly number[] {
  const numbers: number[] = [];
  for (let number = cursor.uint(2); number !== undefined; number = cursor.uint(2)) numbers.push(number);
  return numbers;
}

/**
 * Reports whether a value is a GREASE value (RFC 8701). Clients send values such as 0x0a0a and 0x1a1a to check that
 * servers ignore unknown values.
 */
function isGrease(value: number): boolean {
  return (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff);
}

const MAX_HOST_NAME_LENGTH = 253;
/**
 * Matches one label of a host name. Underscores are allowed, because real host names contain them, although Kubernetes
 * forbids them.
 */
const LABEL_PATTERN = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * Returns a `host_name` in lower case, without a trailing dot. Returns null for an IP address, because some clients
 * send an IP address although RFC 6066 forbids it. Returns undefined if `text` is not a valid host name. International
 * names arrive as A-labels, which are ASCII.
 */
export function parseHostName(text: string): string | null | undefined {
  if (isIP(text) !== 0) return null;
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  return name.length <= MAX_HOST_NAME_LENGTH && name.split('.').every((label) => LABEL_PATTERN.test(label))
    ? name
    : undefined;
}

/**
 * Reads the fields of a message in order. If the message is too short, `uint` and `vector` return undefined, and `skip`
 * returns false.
 */
export class ByteCursor {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  #at: number;

  constructor(bytes: Uint8Array, at = 0, end: number = bytes.length) {
    this.#bytes = bytes;
    this.#at = at;
    this.#end = end;
  }

  get remaining(): number {
    return this.#end - this.#at;
  }

  skip(length: number): boolean {
    if (this.remaining < length) return false;
    this.#at += length;
    return true;
  }

  /** Reads an unsigned integer of `size` bytes in network byte order. */
  uint(size: 1 | 2): number | undefined {
    const at = this.#at;
    if (!this.skip(size)) return undefined;
    const first = this.#bytes[at] as number;
    return size === 1 ? first : (first << 8) | (this.#bytes[at + 1] as number);
  }

  /** Reads a field that begins with its own length, an integer of `lengthSize` bytes. */
  vector(lengthSize: 1 | 2): ByteCursor | undefined {
    const length = this.uint(lengthSize);
    if (length === undefined || !this.skip(length)) return undefined;
    return new ByteCursor(this.#bytes, this.#at - length, this.#at);
  }

  /** Reads the remaining bytes as Latin-1. */
  text(): string {
    const bytes = this.#bytes.subarray(this.#at, this.#end);
    this.#at = this.#end;
    return String.fromCharCode(...bytes);
  }
}
