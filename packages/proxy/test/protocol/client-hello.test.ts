import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_CLIENT_HELLO_BYTES, MAX_CLIENT_HELLO_WIRE_BYTES } from '../../src/protocol/client-hello-reader.ts';
import {
  captureNodeClientHello,
  clientHelloBody,
  clientHelloRecord,
  handshakeMessage,
  lengthPrefixed,
  serverNameExtension,
  splitIntoRecords,
  tlsRecord,
} from './client-hello-bytes.ts';
import { expectHello, faultOf, readSegments } from './read-client-hello.ts';

test('reads server name, protocols and versions of a TLS 1.3 client', async () => {
  const hello = await captureNodeClientHello({ servername: 'Shop.Example.COM', ALPNProtocols: ['h2', 'http/1.1'] });
  assert.deepEqual(expectHello(hello), {
    serverName: 'shop.example.com',
    alpn: ['h2', 'http/1.1'],
    versions: [0x0304, 0x0303],
  });
});

test('reads server name, protocols and versions of a TLS 1.2 client', async () => {
  const hello = await captureNodeClientHello({ servername: 'shop.example.com', maxVersion: 'TLSv1.2' });
  assert.deepEqual(expectHello(hello), { serverName: 'shop.example.com', alpn: [], versions: [0x0303] });
});

test('a client that connects to an IP address gives no server name', async () => {
  const hello = await captureNodeClientHello({});
  assert.equal(expectHello(hello).serverName, null);
});

test('a ClientHello gives the same result in any two segments, byte by byte, and in records of any size', async () => {
  const hello = await captureNodeClientHello({ servername: 'shop.example.com', ALPNProtocols: ['h2'] });
  const expected = readSegments(hello);
  assert.notEqual(expected, 'more');
  for (let at = 1; at < hello.length; at += 1) assert.deepEqual(readSegments(hello, [at]), expected, `cut at ${at}`);
  assert.deepEqual(readSegments(hello, new Array(hello.length).fill(1)), expected);
  for (const size of [1, 2, 3, 4, 5, 63, 256, hello.length]) {
    const records = splitIntoRecords(hello, size);
    assert.deepEqual(readSegments(records), expected, `records of ${size}`);
    assert.deepEqual(
      readSegments(records, new Array(records.length).fill(1)),
      expected,
      `records of ${size}, byte by byte`,
    );
  }
});

test('waits for the rest of a ClientHello wherever it is cut off', async () => {
  const hello = await captureNodeClientHello({ servername: 'shop.example.com' });
  for (const bytes of [hello, splitIntoRecords(hello, 7)]) {
    for (let length = 0; length < bytes.length; length += 1)
      assert.equal(readSegments(bytes.subarray(0, length)), 'more');
  }
});

test('keeps bytes behind the ClientHello for the endpoint and does not read them', () => {
  const hello = clientHelloRecord({ extensions: [serverNameExtension('a.example')] });
  assert.equal(expectHello(Buffer.concat([hello, tlsRecord(Buffer.alloc(100), 23)])).serverName, 'a.example');
  assert.equal(expectHello(Buffer.concat([hello, Buffer.alloc(50_000, 0xff)])).serverName, 'a.example');
});

test('reads a ClientHello without extensions', () => {
  assert.deepEqual(expectHello(clientHelloRecord({ version: 0x0301 })), {
    serverName: null,
    alpn: [],
    versions: [0x0301],
  });
  assert.deepEqual(expectHello(clientHelloRecord({ extensions: [] })).serverName, null);
});

test('ignores GREASE values among the versions', () => {
  const versions = [43, lengthPrefixed(Buffer.from('7a7a03040303', 'hex'), 1)] as const;
  assert.deepEqual(expectHello(clientHelloRecord({ extensions: [versions] })).versions, [0x0304, 0x0303]);
});

test('normalizes case and a trailing dot of a server name, and ignores an IP address', () => {
  const named = (name: string): string | null =>
    expectHello(clientHelloRecord({ extensions: [serverNameExtension(name)] })).serverName;
  assert.equal(named('WWW.Example.COM.'), 'www.example.com');
  assert.equal(named('xn--bcher-kva.example'), 'xn--bcher-kva.example');
  assert.equal(named('_sip.my_host.example'), '_sip.my_host.example');
  assert.equal(named('192.0.2.1'), null);
  assert.equal(named('2001:db8::1'), null);
});

test('refuses an invalid server name', () => {
  const names = ['.', 'a..b', '.a', 'a b', 'a\0.example', '*.example.com', 'bücher.example', '-a.example', 'a/b'];
  for (const name of [...names, `${'a'.repeat(64)}.example`, `${'a.'.repeat(127)}aa`, 'a'.repeat(9_000)]) {
    assert.equal(faultOf(clientHelloRecord({ extensions: [serverNameExtension(name)] })), 'bad-server-name', name);
  }
});

test('refuses bytes that are not TLS at the first wrong byte', () => {
  for (const text of [
    'GET / HTTP/1.1',
    'G',
    'PROXY TCP4',
    'SSH-2.0-x',
    '\0',
    '\x15\x03\x01\0\x02\x02\x28',
    '\x16\x02',
  ]) {
    assert.equal(faultOf(Buffer.from(text, 'latin1')), 'not-tls', JSON.stringify(text));
  }
  assert.equal(faultOf(Buffer.of(0xff, 0xff, 0xff)), 'not-tls');
});

test('refuses a ClientHello of SSL 2', () => {
  const ssl2 = Buffer.of(0x80, 0x2e, 0x01, 0x03, 0x01);
  assert.equal(faultOf(ssl2), 'ssl2');
  assert.equal(readSegments(ssl2.subarray(0, 2)), 'more');
});

test('refuses a first message that is not a complete ClientHello', () => {
  const hello = clientHelloRecord();
  assert.equal(faultOf(tlsRecord(handshakeMessage(Buffer.alloc(2), 2))), 'unexpected-message');
  // The message type is refused before the rest of the message arrives.
  assert.equal(faultOf(Buffer.of(22, 3, 1, 0, 100, 2)), 'unexpected-message');
  const halves = splitIntoRecords(hello, 30);
  const interrupted = Buffer.concat([halves.subarray(0, 35), tlsRecord(Buffer.of(1), 20), halves.subarray(35)]);
  assert.equal(faultOf(interrupted), 'unexpected-message');
  assert.equal(
    faultOf(tlsRecord(Buffer.concat([handshakeMessage(clientHelloBody({})), Buffer.of(1)]))),
    'unexpected-message',
  );
});

test('accepts a ClientHello of the maximum size, and refuses a larger one before it arrives', () => {
  const padded = (length: number): Buffer => clientHelloBody({ extensions: [[21, Buffer.alloc(length)]] });
  const room = MAX_CLIENT_HELLO_BYTES - padded(0).length;
  const inRecords = (body: Buffer): Buffer =>
    splitIntoRecords(Buffer.concat([Buffer.alloc(5), handshakeMessage(body)]), 4_096);
  assert.equal(faultOf(inRecords(padded(room))), 'none');
  assert.equal(faultOf(inRecords(padded(room + 1))), 'too-large');
  assert.equal(faultOf(inRecords(padded(room + 1)).subarray(0, 5 + 4_096)), 'too-large');
  assert.equal(faultOf(Buffer.of(22, 3, 1, 0x40, 1)), 'too-large');
});

test('limits the buffered bytes of a client that sends one byte per record', () => {
  const drip = splitIntoRecords(clientHelloRecord({ extensions: [[21, Buffer.alloc(8_000)]] }), 1);
  assert.ok(drip.length > 2 * MAX_CLIENT_HELLO_WIRE_BYTES);
  assert.equal(faultOf(drip), 'too-large');
  assert.equal(readSegments(drip.subarray(0, MAX_CLIENT_HELLO_WIRE_BYTES - 6)), 'more');
  assert.equal(faultOf(drip.subarray(0, MAX_CLIENT_HELLO_WIRE_BYTES + 6)), 'too-large');
});

test('refuses a malformed ClientHello', () => {
  const name = serverNameExtension('a.example');
  const two = Buffer.concat([name[1].subarray(2), name[1].subarray(2)]);
  const malformed = {
    'an empty record': tlsRecord(Buffer.alloc(0)),
    'a body that is too short': tlsRecord(handshakeMessage(Buffer.alloc(20, 3))),
    'SSL 2 inside TLS': clientHelloRecord({ version: 0x0200 }),
    'a session id of 33 bytes': clientHelloRecord({ sessionId: Buffer.alloc(33) }),
    'no suites': clientHelloRecord({ suites: Buffer.alloc(0) }),
    'a suite and a half': clientHelloRecord({ suites: Buffer.alloc(3) }),
    'no compression': clientHelloRecord({ compressions: Buffer.alloc(0) }),
    'bytes behind the extensions': tlsRecord(
      handshakeMessage(Buffer.concat([clientHelloBody({ extensions: [] }), Buffer.of(0)])),
    ),
    'half an extension': tlsRecord(
      handshakeMessage(Buffer.concat([clientHelloBody({}), lengthPrefixed(Buffer.of(0, 0, 0), 2)])),
    ),
    'two extensions of a type': clientHelloRecord({ extensions: [name, serverNameExtension('b.example')] }),
    'an empty server_name': clientHelloRecord({ extensions: [[0, Buffer.alloc(0)]] }),
    'a list without names': clientHelloRecord({ extensions: [[0, lengthPrefixed(Buffer.alloc(0), 2)]] }),
    'an empty name': clientHelloRecord({ extensions: [serverNameExtension('')] }),
    'two names': clientHelloRecord({ extensions: [[0, lengthPrefixed(two, 2)]] }),
    'a name of another type': clientHelloRecord({ extensions: [serverNameExtension('a.example', 1)] }),
    'bytes behind the names': clientHelloRecord({ extensions: [[0, Buffer.concat([name[1], Buffer.of(0)])]] }),
    'no protocols': clientHelloRecord({ extensions: [[16, lengthPrefixed(Buffer.alloc(0), 2)]] }),
    'an empty protocol': clientHelloRecord({ extensions: [[16, lengthPrefixed(Buffer.of(0), 2)]] }),
    'half a protocol': clientHelloRecord({ extensions: [[16, lengthPrefixed(Buffer.of(5, 0x68), 2)]] }),
    'no versions': clientHelloRecord({ extensions: [[43, Buffer.of(0)]] }),
    'half a version': clientHelloRecord({ extensions: [[43, Buffer.of(3, 3, 4, 3)]] }),
  };
  for (const [what, bytes] of Object.entries(malformed)) assert.equal(faultOf(bytes), 'malformed', what);
});
