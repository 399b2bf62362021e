// Sends messages that are known to confuse proxies to a real proxy, with an endpoint behind the proxy that records each byte.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { startServing, webService } from '../../fixtures/services.ts';
import { type MessageVector, REQUEST_VECTORS } from '../h1/message-vectors.ts';
import { readRequests } from '../h1/read-messages.ts';

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

/** An endpoint that records each complete request and answers it. A request that is cut off may arrive at any time, and counts for no test. */
class Recorder {
  #requests: ReturnType<typeof readRequests>['messages'][number][] = [];
  readonly #server = createServer((socket) => this.#serve(socket));

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as { port: number }).port;
  }

  /** Returns the requests that were recorded since the last call. */
  take(): ReturnType<typeof readRequests>['messages'] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  close(): void {
    this.#server.close();
  }

  #serve(socket: Socket): void {
    let received = Buffer.alloc(0);
    let answered = 0;
    socket.on('error', () => undefined);
    socket.on('data', (bytes: Buffer) => {
      received = Buffer.concat([received, bytes]);
      const { messages } = readRequests(received);
      for (const request of messages.slice(answered)) {
        this.#requests.push(request);
        socket.write(OK);
      }
      answered = messages.length;
    });
  }
}

/** Sends the bytes in parts of `partBytes`. Resolves with everything that the client receives until `isDone`, or until the end. */
async function exchange(
  host: string,
  { bytes }: MessageVector,
  {
    partBytes,
    isCut,
    isDone,
  }: { readonly partBytes: number; readonly isCut: boolean; readonly isDone: (received: string) => boolean },
): Promise<string> {
  const socket = connect({ host, port: PORT, noDelay: true });
  await once(socket, 'connect');
  let received = '';
  const done = new Promise<void>((resolve) => {
    socket.on('data', (part) => {
      received += part.toString('latin1');
      if (isDone(received)) resolve();
    });
    socket.on('close', () => resolve());
    socket.on('error', () => resolve());
  });
  for (let at = 0; at < bytes.length; at += partBytes) {
    if (!socket.write(bytes.subarray(at, at + partBytes))) await Promise.race([once(socket, 'drain'), done]);
  }
  if (isCut) socket.end();
  await done;
  socket.destroy();
  return received;
}

/** The statuses of the answers where they do not follow from the parts of the message. */
const STATUSES: Readonly<Record<string, readonly RegExp[]>> = {
  // RFC 9112 §9.6: a server reads nothing after a request with `Connection: close`.
  'bytes-after-close': [/200/],
  // RFC 9110 §10.1.1: an expectation that is not understood is answered with a 417.
  'expect-100-obfuscated': [/417/],
};

const statusesOf = (received: string): readonly string[] =>
  [...received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status = '']) => status);

describe('requests that confuse proxies', () => {
  let fleet: Fleet;
  const recorder = new Recorder();
  before(async () => {
    fleet = await startFleet();
    const endpoint = { address: '127.0.0.1', port: await recorder.listen() };
    await startServing(fleet, webService([endpoint], { settings: { httpPorts: [PORT] } }));
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    recorder.close();
  });

  for (const vector of REQUEST_VECTORS) {
    const { messages, end } = readRequests(vector.bytes);
    for (const partBytes of [Number.POSITIVE_INFINITY, 7]) {
      if (partBytes === 7 && vector.bytes.length > 2_000) continue;
      test(`${vector.id}, ${partBytes === 7 ? 'in parts of 7 bytes' : 'whole'}`, async () => {
        const isCut = end.startsWith('more');
        const statuses = STATUSES[vector.id] ?? [
          ...messages.map(() => /200/),
          ...(end === 'end' || isCut ? [] : [/4\d\d|50[15]/]),
        ];
        const endsConnection = statuses.length > messages.length || STATUSES[vector.id] !== undefined;
        const received = await exchange(fleet.addressOf(), vector, {
          partBytes: Math.min(partBytes, vector.bytes.length),
          isCut,
          isDone: (text) => !endsConnection && !isCut && statusesOf(text).length === statuses.length,
        });
        const answers = statusesOf(received);
        assert.equal(answers.length, statuses.length, received);
        for (const [index, status] of statuses.entries()) assert.match(answers[index] ?? '', status);
        const forwarded = messages.filter((_, index) => /200/.test(String(statuses[index])));
        assert.deepEqual(
          recorder.take().map(({ framing, body }) => [framing, body]),
          forwarded.map(({ framing, body }) => [framing, body]),
        );
      });
    }
  }
});
