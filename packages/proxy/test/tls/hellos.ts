// ClientHellos as real clients send them, and made ones for what no client sends.
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type ConnectionOptions, connect } from 'node:tls';

/** The first record that `node:tls` sends with these options. */
export async function helloOfNode(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const accepted = once(server, 'connection');
  const client = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ...options });
  client.on('error', () => {}); // Nobody answers it.
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

export interface HelloParts {
  readonly version?: number;
  readonly sessionId?: Uint8Array;
  readonly suites?: Uint8Array;
  readonly compressions?: Uint8Array;
  /** Type and data; undefined: the field is left out, as up to TLS 1.2 it may be. */
  readonly extensions?: readonly (readonly [type: number, data: Uint8Array])[] | undefined;
}

/** A message as its parts say, in one record. */
export function helloOf(parts: HelloParts = {}): Buffer {
  return recordOf(messageOf(bodyOf(parts)));
}

export function bodyOf(parts: HelloParts): Buffer {
  const {
    version = 0x0303,
    sessionId = Buffer.alloc(0),
    suites = Buffer.of(0x13, 1),
    compressions = Buffer.of(0),
  } = parts;
  const extensions = parts.extensions?.map(([type, data]) => Buffer.concat([uint(type, 2), vector(data, 2)]));
  return Buffer.concat([
    uint(version, 2),
    Buffer.alloc(32, 7),
    vector(sessionId, 1),
    vector(suites, 2),
    vector(compressions, 1),
    ...(extensions === undefined ? [] : [vector(Buffer.concat(extensions), 2)]),
  ]);
}

export function messageOf(body: Uint8Array, type = 1): Buffer {
  return Buffer.concat([uint(type, 1), vector(body, 3)]);
}

export function recordOf(fragment: Uint8Array, type = 22): Buffer {
  return Buffer.concat([Buffer.of(type, 3, 1), vector(fragment, 2)]);
}

export function serverName(name: string, type = 0): readonly [number, Buffer] {
  return [0, vector(Buffer.concat([uint(type, 1), vector(Buffer.from(name, 'latin1'), 2)]), 2)];
}

/** The message of a hello in one record, again in records of so many bytes. */
export function inRecordsOf(hello: Uint8Array, size: number): Buffer {
  const message = hello.subarray(5);
  const count = Math.ceil(message.length / size);
  return Buffer.concat(
    Array.from({ length: count }, (_, index) => recordOf(message.subarray(index * size, (index + 1) * size))),
  );
}

export function vector(data: Uint8Array, lengthSize: number): Buffer {
  return Buffer.concat([uint(data.length, lengthSize), data]);
}

function uint(value: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  bytes.writeUIntBE(value, 0, size);
  return bytes;
}
