// An endpoint sends responses that are known to confuse proxies through a real proxy.
import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, before, describe, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { connectClient } from '@weir/testkit';
import { type AnsweringEndpoint, answeringEndpoint, OK } from '../../fixtures/answering-endpoint.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { startServing, webService } from '../../fixtures/services.ts';
import { RESPONSE_VECTORS } from '../h1/message-vectors.ts';

interface Expected {
  /** What the client receives first. */
  readonly received: RegExp;
  /** How the client's connection ends, or undefined if it carries the next request. */
  readonly end?: 'fin' | 'reset';
  /** Whether the connection to the endpoint carries the next request. */
  readonly isReused: boolean;
}

const BAD_GATEWAY = /^HTTP\/1\.1 502 .*not valid HTTP\.\n$/s;
const REFUSED: Expected = { received: BAD_GATEWAY, isReused: false };
const EXPECTED: Readonly<Record<string, Expected>> = {
  // RFC 9112 §6.1: the connection is not reused after a response of HTTP/1.0 with Transfer-Encoding.
  'resp-te-http10': {
    received: /^HTTP\/1\.1 200 Ok\r\n([^\r]+\r\n)*transfer-encoding: chunked\r\n.*\r\n\r\n0\r\n\r\n$/is,
    isReused: false,
  },
  'resp-te-and-cl': REFUSED,
  'resp-te-0': REFUSED,
  'resp-te-1': REFUSED,
  'resp-te-3': REFUSED,
  'resp-cl-negative': REFUSED,
  // RFC 9112 §8: the client must notice that the response is incomplete. A reset may discard the part before.
  'resp-truncated-chunked': { received: /^($|HTTP\/1\.1 200 (?!.*0\r\n\r\n))/s, end: 'reset', isReused: false },
  'resp-101-unsolicited': REFUSED,
  'resp-103-then-200': {
    received: /^HTTP\/1\.1 103 Early Hints\r\n.*\r\n\r\nHTTP\/1\.1 200 OK\r\n.*\r\n\r\nok$/s,
    isReused: true,
  },
  'resp-header-lf': REFUSED,
  // RFC 9112 §9.6: the proxy sends the response and FIN, and discards the rest of the request.
  'resp-before-request-end': {
    received: /^HTTP\/1\.1 413 Too Large\r\n([^\r]+\r\n)*connection: close\r\n([^\r]+\r\n)*\r\n$/i,
    end: 'fin',
    isReused: false,
  },
};

const GET = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n';
const LARGE_POST = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n${'x'.repeat(10_000)}`;

/** Writes the bytes in parts of `partBytes`, each in a turn of the event loop of its own. */
async function writeInParts(socket: Socket, bytes: Uint8Array, partBytes: number): Promise<void> {
  for (let at = 0; at < bytes.length; at += partBytes) {
    socket.write(bytes.subarray(at, at + partBytes));
    await setImmediate();
  }
}

describe('responses that confuse proxies', () => {
  let fleet: Fleet;
  let endpoint: AnsweringEndpoint;
  before(async () => {
    fleet = await startFleet();
    endpoint = await answeringEndpoint();
    await startServing(fleet, webService([endpoint.endpoint], { settings: { httpPorts: [PORT] } }));
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    await endpoint[Symbol.asyncDispose]();
  });

  for (const { id, bytes } of RESPONSE_VECTORS) {
    for (const partBytes of [bytes.length, 7]) {
      test(`${id}, ${partBytes === 7 ? 'in parts of 7 bytes' : 'whole'}`, async () => {
        const { received, end, isReused } = EXPECTED[id] ?? assert.fail(`no expectation for ${id}`);
        const sockets: Socket[] = [];
        endpoint.answer = (socket) => {
          sockets.push(socket);
          if (sockets.length > 1) socket.write(OK);
          else void writeInParts(socket, bytes, partBytes).then(() => id === 'resp-truncated-chunked' && socket.end());
        };
        const target = { host: fleet.addressOf(), port: PORT };
        await using client = await connectClient(target);
        await client.send(id === 'resp-before-request-end' ? LARGE_POST : GET);
        if (end !== 'reset') await client.take(received);
        if (end !== undefined) {
          const ended = await client.ended;
          assert.equal(ended.kind, end === 'fin' ? 'end' : 'error');
          assert.match(client.buffered.toString('latin1'), end === 'fin' ? /^$/ : received);
        }
        await using next = await connectClient(target);
        const user = end === undefined ? client : next;
        await user.send(GET);
        assert.match((await user.take(/ok$/)).toString(), /^HTTP\/1\.1 200 OK\r\n([^\r]+\r\n)+\r\nok$/);
        assert.equal(sockets[0] === sockets[1], isReused);
      });
    }
  }
});
