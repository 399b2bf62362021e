// Follows access logs through the admin server of a real proxy.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { test } from 'node:test';
import { Secret } from '@weir/runtime';
import { connectClient, eventually } from '@weir/testkit';
import { LogHub } from '../../src/access-log/log-hub.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { ALL_REQUESTS, type LoggedRequests, serveLogged } from '../fixtures/logged-requests.ts';

const TOKEN = 'a-token-of-some-length';
const answer = (_request: unknown, response: { writeHead(status: number): { end(): void } }): void =>
  response.writeHead(204).end();

async function follow({ proxy }: LoggedRequests, service: string, token = TOKEN): Promise<IncomingMessage> {
  const { host, port } = proxy.adminAddress ?? assert.fail('the proxy has no admin port');
  const path = `/access-log?service=${encodeURIComponent(service)}`;
  const sent = request({ host, port, path, agent: false, headers: { authorization: `Bearer ${token}` } }).end();
  return (await once(sent, 'response'))[0] as IncomingMessage;
}

async function send(serving: LoggedRequests, port: number, path: string): Promise<void> {
  await using client = await connectClient({ host: serving.host, port });
  await client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  await client.take(/^HTTP\/1\.1 204 /);
}

test('gives a follower the lines of its Service only', async () => {
  await using serving = await serveLogged(ALL_REQUESTS, answer, { adminToken: new Secret(TOKEN) });
  const response = await follow(serving, 'shop/web');
  assert.equal(response.headers['content-type'], 'application/x-ndjson');
  let text = '';
  response.setEncoding('utf8').on('data', (chunk) => {
    text += chunk;
  });
  await send(serving, PORT, '/one');
  await send(serving, 9_090, '/other');
  await send(serving, PORT, '/two');
  await eventually(() => assert.equal(text.match(/"path"/g)?.length, 2));
  assert.ok(!text.includes('/other'));
  assert.equal((await serving.lines(3)).length, 3);
  // The proxy forgets a follower that has left.
  response.destroy();
  await send(serving, PORT, '/three');
  await serving.lines(4);
});

test('refuses a follower without the token, and names that are no Service', async () => {
  await using serving = await serveLogged(ALL_REQUESTS, answer, { adminToken: new Secret(TOKEN) });
  assert.equal((await follow(serving, 'shop/web', 'another-token-of-length')).statusCode, 401);
  assert.equal((await follow(serving, 'shop')).statusCode, 400);
});

test('a follower that does not read misses lines, and is told how many', () => {
  const hub = new LogHub({ write: async () => undefined });
  const written: string[] = [];
  const stream = {
    writableLength: 0,
    write(bytes: Uint8Array | string): void {
      written.push(typeof bytes === 'string' ? bytes : Buffer.from(bytes).toString());
    },
  };
  const stop = hub.follow('shop/web', stream) ?? assert.fail('there are too many followers');
  const publish = (text: string): void => {
    const bytes = Buffer.from(text);
    hub.publish({ bytes, runs: [{ service: 'shop/web', end: bytes.length }] }, () => undefined);
  };
  publish('1\n');
  stream.writableLength = 1_000_000;
  publish('2\n3\n');
  publish('4\n');
  stream.writableLength = 0;
  publish('5\n');
  stop();
  publish('6\n');
  assert.deepEqual(written, ['1\n', '{"dropped":3}\n', '5\n']);
});

test('accepts no more followers than its maximum, and another one after one has left', () => {
  const hub = new LogHub({ write: async () => undefined });
  const stream = { writableLength: 0, write: () => undefined };
  const stops = Array.from({ length: 64 }, (_, index) => hub.follow(`shop/${index % 3}`, stream));
  assert.ok(stops.every((stop) => stop !== undefined));
  assert.equal(hub.follow('shop/web', stream), undefined);
  stops[0]?.();
  stops[0]?.();
  assert.ok(hub.follow('shop/web', stream));
  assert.equal(hub.follow('shop/web', stream), undefined);
});
