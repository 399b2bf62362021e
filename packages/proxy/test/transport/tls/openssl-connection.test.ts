// OpenSSL in memory: a client and a server exchange bytes that arrive in any pieces, or are damaged.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { NativeMemory } from '../../../src/transport/syscalls/ffi.ts';
import { OpensslClient } from '../../../src/transport/syscalls/openssl-client.ts';
import { OpensslConnection } from '../../../src/transport/syscalls/openssl-connection.ts';
import { OPENSSL_TICKET_KEY_BYTES, OpensslContext } from '../../../src/transport/syscalls/openssl-context.ts';
import { SERVER } from '../../fixtures/certificates.ts';

const CONTEXT = new OpensslContext({
  chain: SERVER.chain,
  key: SERVER.key,
  cipherSuites: { tls13: 'TLS_AES_128_GCM_SHA256', tls12: 'ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256' },
  ticketKeys: new Uint8Array(OPENSSL_TICKET_KEY_BYTES),
  sessionIdContext: 'test',
});
const ALPN = Buffer.from('\x02h2\x08http/1.1');
const TLS_1_2 = 0x0303;
const VERSIONS = [
  ['TLS 1.2', TLS_1_2],
  ['TLS 1.3', 0x0304],
] as const;
const memory = new NativeMemory(262_144);

class Server implements Disposable {
  readonly connection: OpensslConnection = new OpensslConnection(CONTEXT, { alpn: ALPN, staple: undefined });
  received: Buffer = Buffer.alloc(0);

  /** Passes the bytes to the server in pieces that end at `cuts`. Returns the server's output. */
  receive(bytes: Uint8Array, cuts: readonly number[] = []): Buffer {
    const ends = [...new Set([...cuts.filter((cut) => cut < bytes.length), bytes.length])].sort((a, b) => a - b);
    const outputs: Buffer[] = [];
    let start = 0;
    for (const end of ends) {
      if (end === start) continue;
      memory.bytes.set(bytes.subarray(start, end));
      const count = this.connection.receive(memory, end - start);
      this.received = Buffer.concat([this.received, memory.bytes.subarray(0, count)]);
      outputs.push(this.takeOutput());
      start = end;
    }
    return Buffer.concat(outputs);
  }

  takeOutput(): Buffer {
    return Buffer.from(memory.bytes.subarray(0, this.connection.takeOutput(memory)));
  }

  [Symbol.dispose](): void {
    this.connection.free();
  }
}

/** Completes the handshake. The client's bytes arrive in pieces that end at `cuts`. */
function connect(client: OpensslClient, server: Server, cuts: readonly number[] = []): void {
  client.handshake(new Uint8Array(0));
  for (let round = 0; round < 4 && !server.connection.isEstablished; round += 1)
    client.handshake(server.receive(client.takeOutput(), cuts));
  assert.equal(server.connection.failure, undefined);
  assert.equal(server.connection.isEstablished, true);
}

for (const [name, maxVersion] of VERSIONS) {
  test(`${name}: completes the handshake and delivers all bytes, wherever the client's bytes are split`, () => {
    const cuts = fc.array(fc.nat(5_000), { maxLength: 40 });
    fc.assert(
      fc.property(
        cuts,
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 20_000 }), { maxLength: 4 }),
        (at, messages) => {
          using client = new OpensslClient({ alpn: Buffer.from('\x08http/1.1'), maxVersion });
          using server = new Server();
          connect(client, server, at);
          for (const message of messages) client.send(message);
          server.receive(client.takeOutput(), at);
          assert.deepEqual(server.received, Buffer.concat(messages));
          assert.equal(server.connection.protocol, 'http/1.1');
        },
      ),
      { numRuns: 60 },
    );
  });

  test(`${name}: accepts every byte of the handshake alone`, () => {
    using client = new OpensslClient({ alpn: ALPN, maxVersion });
    using server = new Server();
    connect(
      client,
      server,
      Array.from({ length: 5_000 }, (_, index) => index),
    );
    assert.equal(server.connection.protocol, 'h2');
  });

  test(`${name}: a client with damaged bytes fails or waits, and no other connection notices`, () => {
    using witness = new OpensslClient({ alpn: ALPN, maxVersion });
    using witnessed = new Server();
    connect(witness, witnessed);
    let sent = 0;
    fc.assert(
      fc.property(
        fc.nat(2),
        fc.double({ min: 0, max: 0.999, noNaN: true }),
        fc.integer({ min: 1, max: 255 }),
        (step, place, mask) => {
          using client = new OpensslClient({ alpn: ALPN, maxVersion });
          using server = new Server();
          client.handshake(new Uint8Array(0));
          for (let round = 0; round < 3; round += 1) {
            const bytes = client.takeOutput();
            const at = Math.floor(bytes.length * place);
            if (round === step && bytes.length > 0) bytes[at] = (bytes[at] as number) ^ mask;
            client.handshake(server.receive(bytes));
            if (round === 1 && server.connection.isEstablished) client.send(Buffer.from('message'));
          }
          assert.ok(server.received.length === 0 || server.received.equals(Buffer.from('message')));
          witness.send(Buffer.from([sent & 255]));
          witnessed.receive(witness.takeOutput());
          sent += 1;
          assert.equal(witnessed.received.length, sent);
        },
      ),
      { numRuns: 200 },
    );
  });
}

test('random bytes never complete a handshake', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 3_000 }), fc.boolean(), (bytes, isRecord) => {
      using server = new Server();
      const prefix = Buffer.of(22, 3, 1, bytes.length >> 8, bytes.length & 255);
      server.receive(isRecord ? Buffer.concat([prefix, bytes]) : bytes);
      server.receive(bytes);
      assert.equal(server.connection.isEstablished, false);
      assert.equal(server.received.length, 0);
    }),
    { numRuns: 300 },
  );
});

test('reports the error codes of Node.js, and sends an alert', () => {
  using server = new Server();
  const output = server.receive(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
  assert.equal(server.connection.failure, 'ERR_SSL_HTTP_REQUEST');
  using picky = new Server();
  using client = new OpensslClient({ alpn: Buffer.from('\x03foo') });
  client.handshake(new Uint8Array(0));
  const alert = picky.receive(client.takeOutput());
  assert.equal(picky.connection.failure, 'ERR_SSL_NO_APPLICATION_PROTOCOL');
  // An alert (21) that is fatal (2): no_application_protocol (120), RFC 7301 §3.2.
  assert.deepEqual([alert[0], ...alert.subarray(5)], [21, 2, 120]);
  assert.equal(output.length, 0);
});

test('never passes the output of one connection to another', () => {
  using client = new OpensslClient({ alpn: ALPN });
  using abandoned = new Server();
  using other = new Server();
  client.handshake(new Uint8Array(0));
  const hello = client.takeOutput();
  memory.bytes.set(hello);
  abandoned.connection.receive(memory, hello.length);
  assert.equal(other.takeOutput().length, 0);
  memory.bytes.set(Buffer.from('GET / HTTP/1.1\r\n\r\n'));
  other.connection.receive(memory, 18);
  assert.equal(other.takeOutput().length, 0);
  assert.equal(abandoned.takeOutput().length, 0);
});

test('ignores what comes after close_notify', () => {
  using client = new OpensslClient({ alpn: ALPN });
  using server = new Server();
  connect(client, server);
  client.send(Buffer.from('last'));
  client.sendCloseNotify();
  server.receive(Buffer.concat([client.takeOutput(), Buffer.alloc(100, 23)]));
  server.receive(Buffer.alloc(100, 23));
  const { hasEnded, failure } = server.connection;
  assert.deepEqual([server.received.toString(), hasEnded, failure], ['last', true, undefined]);
  // Only one direction has ended.
  memory.bytes.set(Buffer.from('answer'));
  assert.equal(server.connection.seal(memory, 0, 6), true);
  assert.ok(server.takeOutput().length > 6);
});

test('does nothing after `free`', () => {
  const server = new Server();
  server.connection.free();
  server.connection.free();
  server.receive(Buffer.alloc(100, 22));
  server.connection.sendCloseNotify();
  assert.equal(server.connection.seal(memory, 0, 10), false);
  assert.deepEqual([server.connection.version, server.connection.protocol], ['', undefined]);
  assert.equal(server.takeOutput().length, 0);
});
