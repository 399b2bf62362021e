import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import fc from 'fast-check';
import { arbitraryRequest, hostileRequests, wireOf } from './arbitrary-request.ts';
import { LLHTTP_VECTORS, REQUEST_VECTORS } from './message-vectors.ts';
import { type ReadMessage, readRequests } from './read-messages.ts';

type NodeMessage = Pick<ReadMessage, 'start' | 'fields' | 'body' | 'trailers'>;

/** Returns the first request that the HTTP server of Node reads from `bytes`, or the code of its error. */
function readWithNode(bytes: Uint8Array): Promise<NodeMessage | string> {
  const { promise, resolve } = Promise.withResolvers<NodeMessage | string>();
  const take = (request: IncomingMessage, response: ServerResponse): void => {
    let body = '';
    request.setEncoding('latin1');
    request.on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      resolve({
        start: `${request.method} ${request.url} HTTP/${request.httpVersion}`,
        fields: pairsOf(request.rawHeaders),
        body,
        trailers: pairsOf(request.rawTrailers),
      });
      response.end();
    });
  };
  const server = createServer({ maxHeaderSize: 64 * 1024 }, take);
  server.on('checkContinue', take);
  server.on('checkExpectation', take);
  server.on('clientError', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  const socket = new Duplex({ read: () => undefined, write: (_bytes, _encoding, done) => done() });
  socket.on('close', () => resolve('closed'));
  server.emit('connection', socket);
  socket.push(bytes);
  socket.push(null);
  return promise.finally(() => socket.destroy());
}

function pairsOf(raw: readonly string[]): (readonly [string, string])[] {
  return raw.flatMap((name, index) => (index % 2 === 0 ? [[name, raw[index + 1] as string] as const] : []));
}

/** Whitespace that the grammar allows and that Node refuses. Weir forwards none of it. */
const NODE_REFUSES: readonly RegExp[] = [
  // RFC 9112 §7.1.1: around the parts of a chunk extension.
  /\r\n[0-9a-f]+(?:[ \t]+;|;[^\r]*[ \t])/i,
  // RFC 9112 §5: behind the value of a field.
  /\r\ntransfer-encoding:[^\r]*[ \t]\r\n/i,
];

/** Checks that Node reads the first request of `bytes` equally if Weir accepts it. Returns whether Weir accepts it. */
async function isAcceptedEqually(bytes: Uint8Array): Promise<boolean> {
  const { messages, ends } = readRequests(bytes);
  const [message] = messages;
  // Node knows a list of methods, and Weir accepts every token (RFC 9110 §9.1).
  if (message === undefined || !/^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH|PROPFIND) /.test(message.start)) return false;
  const { start, fields, body, trailers } = message;
  const request = bytes.subarray(0, ends[0]);
  if (NODE_REFUSES.some((pattern) => pattern.test(Buffer.from(request).toString('latin1')))) return true;
  assert.deepEqual(await readWithNode(request), { start, fields, body, trailers });
  return true;
}

test('Node reads each valid request as Weir does', async () => {
  await fc.assert(
    fc.asyncProperty(arbitraryRequest, async (request) => {
      assert.ok(await isAcceptedEqually(Buffer.from(wireOf(request), 'latin1')));
    }),
    { numRuns: 300 },
  );
});

test('Node reads each hostile request that Weir accepts as Weir does', async () => {
  await fc.assert(
    fc.asyncProperty(hostileRequests, async (bytes) => {
      await isAcceptedEqually(bytes);
    }),
    { numRuns: 500 },
  );
});

test('Node reads each known request that Weir accepts as Weir does', async () => {
  let accepted = 0;
  for (const { bytes } of [...REQUEST_VECTORS, ...LLHTTP_VECTORS]) if (await isAcceptedEqually(bytes)) accepted += 1;
  assert.ok(accepted >= 20, String(accepted));
});
