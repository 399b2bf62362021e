/** A ClientHello of TLS 1.2 (RFC 8446, 4.1.2) in one record, which asks for `host` (RFC 6066, 3). */
export function clientHello(host: string): Buffer {
  const name = Buffer.from(host, 'ascii');
  const serverName = withLength(2, Buffer.concat([Buffer.from([0]), withLength(2, name)]));
  const extensions = Buffer.concat([extension(0, serverName), extension(10, Buffer.from([0, 2, 0, 29]))]);
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7), // random
    withLength(1, Buffer.alloc(32, 9)), // session
    withLength(2, Buffer.from([0x13, 0x01, 0xc0, 0x2f])), // suites
    withLength(1, Buffer.from([0])), // compression
    withLength(2, extensions),
  ]);
  const message = Buffer.concat([Buffer.from([1]), withLength(3, body)]);
  return Buffer.concat([Buffer.from([22, 3, 1]), withLength(2, message)]);
}

function extension(type: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type >> 8, type & 0xff]), withLength(2, data)]);
}

function withLength(bytes: number, data: Buffer): Buffer {
  const length = Buffer.alloc(bytes);
  length.writeUIntBE(data.length, 0, bytes);
  return Buffer.concat([length, data]);
}
