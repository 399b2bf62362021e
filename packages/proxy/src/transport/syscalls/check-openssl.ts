// A self-test of the functions of OpenSSL in the binary of Node.js. In memory, a client and a server exchange bytes over TLS.
import { strict as assert } from 'node:assert';
import { generateKeyPairSync, sign } from 'node:crypto';
import { NativeMemory } from './ffi.ts';
import { OpensslClient } from './openssl-client.ts';
import { OpensslConnection } from './openssl-connection.ts';
import { OPENSSL_TICKET_KEY_BYTES, OpensslContext } from './openssl-context.ts';

const MEMORY_BYTES = 262_144;
const MAX_ROUND_TRIPS = 4;
/** More than one record. */
const MESSAGE_BYTES = 20_000;

/** Throws an error that names the first unexpected result. Takes a few milliseconds. */
export function checkOpenssl(): void {
  const context = selfTestContext();
  testConnection(context);
  testInvalidClient(context);
}

function testConnection(context: OpensslContext): void {
  const memory = new NativeMemory(MEMORY_BYTES);
  const server = new OpensslConnection(context, { alpn: Buffer.from('\x02h2'), staple: undefined });
  using client = new OpensslClient({ alpn: Buffer.from('\x08http/1.1\x02h2') });
  try {
    connect(client, server, memory);
    assert(server.version === 'TLSv1.3', `version ${server.version}`);
    assert(server.protocol === 'h2', `ALPN: ${server.protocol}`);
    const message = Buffer.alloc(MESSAGE_BYTES, 'weir');
    client.send(message);
    const count = deliver(client.takeOutput(), { to: server, memory });
    assert(message.equals(memory.bytes.subarray(0, count)), 'SSL_read: other bytes than sent');
    memory.bytes.set(message);
    assert(server.seal(memory, 4, 10_000), 'SSL_write');
    const answer = client.receive(takeOutput(server, memory));
    assert(message.subarray(4, 10_004).equals(answer), 'SSL_write: other bytes than sent');
    client.sendCloseNotify();
    deliver(client.takeOutput(), { to: server, memory });
    assert(server.hasEnded && server.failure === undefined, `close_notify: ${server.failure ?? 'not received'}`);
  } finally {
    server.free();
  }
}

function testInvalidClient(context: OpensslContext): void {
  const memory = new NativeMemory(MEMORY_BYTES);
  const server = new OpensslConnection(context, { alpn: new Uint8Array(0), staple: undefined });
  deliver(Buffer.from('GET / HTTP/1.1\r\n\r\n'), { to: server, memory });
  server.free();
  assert(server.failure === 'ERR_SSL_HTTP_REQUEST', `error code ${server.failure}`);
}

/** Completes the handshake of a client and a server. */
function connect(client: OpensslClient, server: OpensslConnection, memory: NativeMemory): void {
  client.handshake(new Uint8Array(0));
  for (let round = 0; round < MAX_ROUND_TRIPS; round += 1) {
    deliver(client.takeOutput(), { to: server, memory });
    const isComplete = client.handshake(takeOutput(server, memory));
    if (isComplete && server.isEstablished) return;
  }
  throw new Error(`SSL_do_handshake: ${server.failure ?? 'not complete'}`);
}

function deliver(
  bytes: Uint8Array,
  { to, memory }: { readonly to: OpensslConnection; readonly memory: NativeMemory },
): number {
  memory.bytes.set(bytes);
  return bytes.length === 0 ? 0 : to.receive(memory, bytes.length);
}

function takeOutput(server: OpensslConnection, memory: NativeMemory): Uint8Array {
  return memory.bytes.slice(0, server.takeOutput(memory));
}

/** Returns a context with a new key and a certificate that nobody trusts. */
function selfTestContext(): OpensslContext {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return new OpensslContext({
    chain: selfSignedCertificate(publicKey.export({ type: 'spki', format: 'der' }), (bytes) =>
      sign('sha256', bytes, privateKey),
    ),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cipherSuites: { tls13: 'TLS_AES_128_GCM_SHA256', tls12: 'ECDHE-ECDSA-AES128-GCM-SHA256' },
    ticketKeys: new Uint8Array(OPENSSL_TICKET_KEY_BYTES),
    sessionIdContext: 'self-test',
  });
}

/** Returns an X.509 certificate of version 1 without names (RFC 5280 §4.1) in PEM. */
function selfSignedCertificate(publicKey: Buffer, signatureOf: (bytes: Buffer) => Buffer): string {
  const algorithm = der(0x30, ECDSA_WITH_SHA256);
  const noName = der(0x30);
  const validity = der(0x30, der(0x17, Buffer.from('260101000000Z')), der(0x17, Buffer.from('490101000000Z')));
  const content = der(0x30, der(0x02, Buffer.of(1)), algorithm, noName, validity, noName, publicKey);
  const certificate = der(0x30, content, algorithm, der(0x03, Buffer.of(0), signatureOf(content)));
  return `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64')}\n-----END CERTIFICATE-----\n`;
}

const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex');

/** Encodes a value of DER with a length below 65,536. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 128) return Buffer.concat([Buffer.of(tag, length), content]);
  return Buffer.concat([Buffer.of(tag, 0x82, length >> 8, length & 255), content]);
}
