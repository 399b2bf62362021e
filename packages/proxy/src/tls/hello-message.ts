import { ByteCursor } from './byte-cursor.ts';
import type { ClientHello, ClientHelloFault } from './client-hello.ts';
import { hostNameOf } from './host-name.ts';

const SERVER_NAME = 0;
const ALPN = 16;
const SUPPORTED_VERSIONS = 43;
const HOST_NAME = 0;
const RANDOM_BYTES = 32;
const LONGEST_SESSION_ID = 32;

/** The body of a ClientHello (RFC 8446, 4.1.2), or why it is refused. */
export function readHelloMessage(body: Uint8Array): ClientHello | ClientHelloFault {
  const cursor = new ByteCursor(body);
  const version = cursor.uint(2);
  const hasRandom = cursor.skip(RANDOM_BYTES);
  const sessionId = cursor.vector(1);
  const suites = cursor.vector(2);
  const compressions = cursor.vector(1);
  if (version === undefined || version >> 8 !== 3 || !hasRandom) return 'malformed';
  if (sessionId === undefined || sessionId.left > LONGEST_SESSION_ID) return 'malformed';
  if (suites === undefined || suites.left === 0 || suites.left % 2 !== 0) return 'malformed';
  if (compressions === undefined || compressions.left === 0) return 'malformed';
  const extensions = readExtensions(cursor);
  return extensions === undefined ? 'malformed' : readHello(version, extensions);
}

/** By type. Undefined: malformed, or one comes twice (RFC 8446, 4.2): the endpoint might believe the other one. */
function readExtensions(message: ByteCursor): ReadonlyMap<number, ByteCursor> | undefined {
  const found = new Map<number, ByteCursor>();
  // Up to TLS 1.2 there may be none at all.
  if (message.left === 0) return found;
  const extensions = message.vector(2);
  if (extensions === undefined || message.left > 0) return undefined;
  while (extensions.left > 0) {
    const type = extensions.uint(2);
    const data = extensions.vector(2);
    if (type === undefined || data === undefined || found.has(type)) return undefined;
    found.set(type, data);
  }
  return found;
}

function readHello(version: number, extensions: ReadonlyMap<number, ByteCursor>): ClientHello | ClientHelloFault {
  const name = readServerName(extensions.get(SERVER_NAME));
  const alpn = readAlpn(extensions.get(ALPN));
  const versions = readVersions(extensions.get(SUPPORTED_VERSIONS), version);
  if (name === undefined || alpn === undefined || versions === undefined) return 'malformed';
  const serverName = name === null ? null : hostNameOf(name);
  return serverName === undefined ? 'bad-server-name' : { serverName, alpn, versions };
}

/** RFC 6066, 3: one name of each type, and there is only one type. */
function readServerName(extension: ByteCursor | undefined): string | null | undefined {
  if (extension === undefined) return null;
  const list = extension.vector(2);
  const type = list?.uint(1);
  const name = list?.vector(2);
  if (type !== HOST_NAME || name === undefined || name.left === 0) return undefined;
  return list?.left === 0 && extension.left === 0 ? name.text() : undefined;
}

function readAlpn(extension: ByteCursor | undefined): readonly string[] | undefined {
  if (extension === undefined) return [];
  const list = extension.vector(2);
  if (list === undefined || list.left === 0 || extension.left > 0) return undefined;
  const protocols: string[] = [];
  while (list.left > 0) {
    const protocol = list.vector(1);
    if (protocol === undefined || protocol.left === 0) return undefined;
    protocols.push(protocol.text());
  }
  return protocols;
}

function readVersions(extension: ByteCursor | undefined, legacy: number): readonly number[] | undefined {
  if (extension === undefined) return [legacy];
  const list = extension.vector(1);
  if (list === undefined || list.left === 0 || list.left % 2 !== 0 || extension.left > 0) return undefined;
  const versions: number[] = [];
  for (let version = list.uint(2); version !== undefined; version = list.uint(2)) {
    if (!isGrease(version)) versions.push(version);
  }
  return versions;
}

/** RFC 8701: 0x0a0a, 0x1a1a … mean nothing, so that servers do not unlearn to ignore. */
function isGrease(value: number): boolean {
  return (value & 0x0f0f) === 0x0a0a && value >> 8 === (value & 0xff);
}
