// ClientHellos that Node's TLS client sends, and synthetic ones with fields that no real client sends.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';

/** Returns the first record that the TLS client of Node sends with these options. */
export async function captureNodeClientHello(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const client = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ...options });
  client.on('error', () => {}); // The handshake fails because the server does not answer.
  const [socket] = (await accepted) as [Socket];
  let bytes = Buffer.alloc(0);
  for await (const chunk of socket) {
    bytes = Buffer.concat([bytes, chunk]);
    if (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt16BE(3)) break;
  }
  client.destroy();
  server.close();
  await once(server, 'close');
  return bytes;
}

export interface ClientHelloParts {
  readonly version?: number;
  readonly sessionId?: Uint8Array;
  readonly suites?: Uint8Array;
  readonly compressions?: Uint8Array;
  /** If undefined, the ClientHello has no extensions field, as TLS 1.2 and older versions allow. */
  readonly extensions?: readonly (readonly [type: number, data: Uint8Array])[] | undefined;
}

/** Returns one record that contains a ClientHello with these fields. */
export function clientHelloRecord(parts: ClientHelloParts = {}): Buffer {
  return tlsRecord(handshakeMessage(clientHelloBody(parts)));
}

export function clientHelloBody(parts: ClientHelloParts): Buffer {
  const {
    version = 0x0303,
    sessionId = Buffer.alloc(0),
    suites = Buffer.of(0x13, 1),
    compressions = Buffer.of(0),
  } = parts;
  const extensions = parts.extensions?.map(([type, data]) => Buffer.concat([uint(type, 2), lengthPrefixed(data, 2)]));
  return Buffer.concat([
    uint(version, 2),
    Buffer.alloc(32, 7),
    lengthPrefixed(sessionId, 1),
    lengthPrefixed(suites, 2),
    lengthPrefixed(compressions, 1),
    ...(extensions === undefined ? [] : [lengthPrefixed(Buffer.concat(extensions), 2)]),
  ]);
}

export function handshakeMessage(body: Uint8Array, type = 1): Buffer {
  return Buffer.concat([uint(type, 1), lengthPrefixed(body, 3)]);
}

export function tlsRecord(fragment: Uint8Array, type = 22): Buffer {
  return Buffer.concat([Buffer.of(type, 3, 1), lengthPrefixed(fragment, 2)]);
}

export function serverNameExtension(name: string, type = 0): readonly [number, Buffer] {
  return [0, lengthPrefixed(Buffer.concat([uint(type, 1), lengthPrefixed(Buffer.from(name, 'latin1'), 2)]), 2)];
}

/** Splits the record of a ClientHello into several records with `size` bytes of content each. */
export function splitIntoRecords(hello: Uint8Array, size: number): Buffer {
  const message = hello.subarray(5);
  const count = Math.ceil(message.length / size);
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => tlsRecord(message.subarray(index * size, (index + 1) * size))),
  );
}

export function lengthPrefixed(data: Uint8Array, lengthSize: number): Buffer {
  return Buffer.concat([uint(data.length, lengthSize), data]);
}

function uint(value: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, 0, size);
  return bytes;
}
