// Tests flow control between clients and endpoints of HTTP/2 (node:http2).
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { request as http1Request, type IncomingMessage } from 'node:http';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import { test } from 'node:test';
import { eventually } from '@weir/testkit';
import {
  answerOf,
  ask1,
  ask2,
  echo,
  echoed,
  hashOf,
  http2Client,
  http2Endpoint,
  serveHttp2,
} from '../../fixtures/http2-endpoint.ts';

const MEGABYTE = 1_048_576;

test('a client that does not read stops only its own streams', async (context) => {
  let sent = 0;
  const at = await http2Endpoint(context, (stream, headers) => {
    stream.respond({ ':status': 200 });
    if (headers[':path'] === '/small') stream.end('small');
    else {
      const part = Buffer.alloc(65_536, 'x');
      const write = (): void => {
        while (!stream.destroyed && sent < 64 * MEGABYTE) {
          sent += part.length;
          if (!stream.write(part)) return;
        }
        stream.end();
      };
      stream.on('drain', write);
      write();
    }
  });
  const worker = await serveHttp2(context, [at]);
  const [slow, other] = [http2Client(context, worker), http2Client(context, worker)];
  const stalled = Array.from({ length: 20 }, () => slow.request({ ':path': '/large' }));
  await Promise.all(stalled.map((stream) => once(stream, 'response')));
  const http1 = http1Request({ host: worker.host, port: worker.port, path: '/large', agent: false }).end();
  const [response] = (await once(http1, 'response')) as [IncomingMessage];
  for (let count = 0; count < 20; count += 1) {
    assert.equal((await ask2(other, { ':path': '/small' })).body.toString(), 'small');
    assert.equal((await ask2(slow, { ':path': '/small' })).body.toString(), 'small');
    assert.equal((await ask1(worker, '/small')).body.toString(), 'small');
  }
  assert.ok(sent < 32 * MEGABYTE, `${sent} bytes`);
  assert.equal(at.sessions.length, 1);
  response.destroy();
  for (const stream of stalled) stream.close(constants.NGHTTP2_CANCEL);
});

test('a slow endpoint stops the body of its own request only', async (context) => {
  const streams: ServerHttp2Stream[] = [];
  const at = await http2Endpoint(context, (stream, headers) => {
    if (headers[':path'] === '/slow') streams.push(stream);
    else void echo(stream, headers);
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const slow = client.request({ ':method': 'POST', ':path': '/slow' });
  const sent = randomBytes(8 * MEGABYTE);
  slow.end(sent);
  await eventually(() => assert.equal(streams.length, 1));
  const part = randomBytes(100_000);
  for (let count = 0; count < 5; count += 1) {
    assert.ok(echoed(await ask2(client, { ':method': 'POST', ':path': '/' }, part)).body.equals(part));
  }
  const [stream] = streams as [ServerHttp2Stream];
  void echo(stream, {});
  assert.equal((await answerOf(slow)).headers['x-hash'], hashOf(sent));
});

test('relays a conversation whose sides wait for each other', async (context) => {
  const at = await http2Endpoint(context, (stream) => {
    stream.respond({ ':status': 200 });
    stream.on('data', (part: Buffer) => stream.write(`echo ${part}`));
    stream.on('end', () => stream.end('end'));
  });
  const worker = await serveHttp2(context, [at]);
  const client = http2Client(context, worker);
  const stream = client.request({ ':method': 'POST', ':path': '/' });
  const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  assert.equal(headers[':status'], 200);
  for (let count = 0; count < 100; count += 1) {
    stream.write(`${count}`);
    assert.equal(String((await once(stream, 'data'))[0]), `echo ${count}`);
  }
  stream.end();
  assert.equal(String((await once(stream, 'data'))[0]), 'end');
});
