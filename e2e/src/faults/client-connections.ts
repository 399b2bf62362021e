// Connections of the fault suite's clients. Each connection counts the bytes that it sends and receives, so that the sum over all connections
// can be compared with the usage ledger.
import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connectClient, patternBytes, type TestClient } from '@weir/testkit';

export interface ClientConnection {
  readonly sent: number;
  readonly received: number;
  /** Sends a message or request and waits for the complete answer. Rejects if the answer is wrong or does not arrive. */
  exchange(): Promise<void>;
  /** Ends the connection in order, so that both sides have seen every byte. Rejects if the proxy resets the connection. */
  end(): Promise<void>;
  /** Ends the connection at once. An open exchange rejects. */
  abort(): Promise<void>;
}

export type Protocol = 'tcp' | 'udp' | 'http' | 'h2';
export const PORTS: Readonly<Record<Protocol, number>> = { tcp: 7001, udp: 7002, http: 7003, h2: 7004 };

/** Longer than the longest pause of a process, because operations on a paused proxy complete after the pause. */
const ANSWER_TIMEOUT_MS = 60_000;
/** The body of every answer of an HTTP backend. */
export const HTTP_BODY: string = 'answer '.repeat(30);

export const connectTo: Readonly<Record<Protocol, (host: string) => Promise<ClientConnection>>> = {
  tcp: async (host) => {
    const client = await connect(host, 'tcp');
    let offset = 0;
    return overClient(client, async () => {
      const bytes = patternBytes({ seed: 1, offset, length: 200 + (offset % 1_700) });
      offset += bytes.length;
      await client.send(bytes);
      assert.ok((await client.take(bytes.length)).equals(bytes), 'the echo differs from what the client sent');
    });
  },
  http: async (host) => {
    const client = await connect(host, 'http');
    return overClient(client, async () => {
      await client.send('GET / HTTP/1.1\r\nHost: http.example\r\n\r\n');
      const head = String(await client.take(/\r\n\r\n/));
      assert.match(head, /^HTTP\/1\.1 200 /);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1]);
      assert.equal(String(await client.take(length)), HTTP_BODY);
    });
  },
  h2: async (host) => {
    const client = await connect(host, 'h2');
    await client.send(Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), http2Frame(SETTINGS, 0, 0)]));
    const count = { sent: 0, received: 0, stream: 1 };
    const exchange = async (): Promise<void> => {
      await client.send(http2Frame(HEADERS, END_HEADERS | END_STREAM, count.stream, REQUEST_HEADERS));
      count.sent += REQUEST_HEADERS.length;
      count.received += await readHttp2Answer(client, count.stream);
      count.stream += 2;
    };
    return overClient(client, exchange, count);
  },
  udp: async (host) => {
    const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4');
    socket.connect(PORTS.udp, host);
    await once(socket, 'connect');
    const count = { sent: 0, received: 0, number: 0 };
    socket.on('message', (message) => {
      count.received += message.length;
    });
    const closing = new AbortController();
    const close = (): Promise<void> => {
      if (closing.signal.aborted) return Promise.resolve();
      closing.abort(new Error('the client has closed its socket'));
      return new Promise((resolve) => socket.close(() => resolve()));
    };
    return {
      get sent() {
        return count.sent;
      },
      get received() {
        return count.received;
      },
      async exchange() {
        const text = `datagram ${count.number++} `.padEnd(300, 'x');
        // `once` also rejects at an ICMP error.
        const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]);
        const answer = once(socket, 'message', { signal });
        socket.send(text);
        count.sent += text.length;
        assert.equal(String((await answer)[0]), text);
      },
      end: close,
      abort: close,
    };
  },
};

function connect(host: string, protocol: Protocol): Promise<TestClient> {
  return connectClient({ host, port: PORTS[protocol], timeoutMs: ANSWER_TIMEOUT_MS });
}

function overClient(
  client: TestClient,
  exchange: () => Promise<void>,
  count: { readonly sent: number; readonly received: number } = client,
): ClientConnection {
  return {
    get sent() {
      return count.sent;
    },
    get received() {
      return count.received;
    },
    exchange,
    async end() {
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
    },
    abort: () => client.close(),
  };
}

// HTTP/2 (RFC 9113), only as much as a client with one open request and short answers needs. The ledger counts the header blocks and the
// data of each stream, but not the heads of frames and the frames of the connection, which belong to no Service. So this client counts the
// same; the client of Node does not reveal the size of header blocks.
const [DATA, HEADERS, SETTINGS] = [0, 1, 4];
const [END_STREAM, END_HEADERS, ACK] = [0x1, 0x4, 0x1];
const FRAME_HEAD_BYTES = 9;

/** `GET http://h2.example/` with entries of the static table (RFC 7541, appendix A): 2, 6, 4, and 1 with a literal value. */
const REQUEST_HEADERS: Buffer = Buffer.concat([Buffer.from([0x82, 0x86, 0x84, 0x01, 10]), Buffer.from('h2.example')]);

function http2Frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(FRAME_HEAD_BYTES);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Reads frames until the end of the stream. Checks the status 200 and the body. Returns the bytes of the header block and the body. */
async function readHttp2Answer(client: TestClient, stream: number): Promise<number> {
  let body = '';
  let bytes = 0;
  for (;;) {
    const head = await client.take(FRAME_HEAD_BYTES);
    const [type, flags] = [head.readUInt8(3), head.readUInt8(4)];
    const payload = await client.take(head.readUIntBE(0, 3));
    if (type === SETTINGS && (flags & ACK) === 0) await client.send(http2Frame(SETTINGS, ACK, 0));
    if (head.readUInt32BE(5) !== stream) continue;
    bytes += payload.length;
    // Entry 8 of the static table is `:status: 200`.
    if (type === HEADERS) assert.equal(payload[0], 0x88, 'the status is not 200');
    else if (type === DATA) body += payload;
    else assert.fail(`the stream got a frame of type ${type}`);
    if ((flags & END_STREAM) !== 0) break;
  }
  assert.equal(body, HTTP_BODY);
  return bytes;
}
