import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import { describe, test } from 'node:test';
import { makeCertificate } from '@weir/testkit';
import { tlsLoadResult } from '../../src/l7/loads.ts';
import { BROWSER_FIELDS, CLOSE_FIELD, requestText } from '../../src/l7/requests.ts';
import { runOpenLoop, runTlsConnections, type TlsConnectionsReport } from '../../src/load/generators.ts';
import { h2loadReportErrors, parseH2loadReport } from '../../src/load/h2load.ts';

const BODY = 'a body\n';
const target = { host: 'bench.example', path: '/' };
const request = { text: requestText({ ...target, fields: BROWSER_FIELDS }), expectedBody: BODY };
const closing = { text: requestText({ ...target, fields: [...BROWSER_FIELDS, CLOSE_FIELD] }), expectedBody: BODY };

describe('requestText', () => {
  test('returns a request as a browser sends it', () => {
    assert.match(request.text, /^GET \/ HTTP\/1\.1\r\nHost: bench\.example\r\n(\S+: [^\r]+\r\n){5}\r\n$/);
    assert.ok(request.text.length >= 310 && request.text.length <= 350, String(request.text.length));
  });

  test('returns a POST request with its body', () => {
    const text = requestText({ ...target, fields: [], uploadBytes: 3 });
    assert.equal(text, 'POST / HTTP/1.1\r\nHost: bench.example\r\nContent-Length: 3\r\n\r\nbbb');
  });
});

describe('runOpenLoop with requests', () => {
  test('sends requests at the rate and counts the bytes of all responses', async () => {
    let requests = 0;
    await using server = await listening((_request, response) => {
      requests++;
      response.end(BODY);
    });
    const report = await runOpenLoop({ port: server.port, rate: 200, seconds: 1, connections: 4, request });
    assert.ok(report.kind === 'measured');
    assert.deepEqual([report.messages, requests], [260, 260]);
    assert.ok(report.receivedBytes > 260 * BODY.length && report.receivedBytes % 260 === 0);
  });

  test('fails if a response has another status', async () => {
    await using server = await listening((_request, response) => response.writeHead(503).end(BODY));
    const run = runOpenLoop({ port: server.port, rate: 100, seconds: 1, connections: 1, request });
    await assert.rejects(run, /not the expected response: HTTP\/1\.1 503/);
  });
});

describe('runTlsConnections', () => {
  for (const resumes of [false, true]) {
    test(`${resumes ? 'resumes the session of the first connection' : 'makes a full handshake each time'}`, async () => {
      await using server = await listening((_request, response) => response.end(BODY), { isTls: true });
      const load = { port: server.port, seconds: 1, connections: 2, resumes };
      const report = await runTlsConnections({ ...load, request: closing });
      assert.deepEqual(tlsLoadResult(report, { resumes }).errors, []);
      assert.equal(report.sentBytes, report.connections * closing.text.length);
      assert.ok(report.connections > 1);
    });
  }

  test('is invalid if a connection was not resumed', () => {
    const report: TlsConnectionsReport = { connections: 10, resumed: 8, ms: 1, sentBytes: 1, receivedBytes: 1 };
    assert.deepEqual(tlsLoadResult(report, { resumes: true }).errors, ['8 instead of 9 connections were resumed']);
    assert.deepEqual(tlsLoadResult(report, { resumes: false }).errors, ['8 instead of 0 connections were resumed']);
  });
});

describe('h2load reports', () => {
  const output = (succeeded: number, failed: number): string => `
finished in 1.00s, 1000.00 req/s, 40.00KB/s
requests: 1000 total, 1000 started, 1000 done, ${succeeded} succeeded, ${failed} failed, 0 errored, 0 timeout
status codes: ${succeeded} 2xx, 0 3xx, 0 4xx, ${failed} 5xx
`;

  test('have the numbers of good and failed requests', () => {
    assert.deepEqual(parseH2loadReport(output(998, 2)), { succeeded: 998, failed: 2 });
    assert.deepEqual(h2loadReportErrors({ succeeded: 998, failed: 0 }), []);
  });

  test('are invalid if a request failed or none succeeded', () => {
    assert.deepEqual(h2loadReportErrors({ succeeded: 998, failed: 2 }), ['2 requests failed']);
    assert.match(h2loadReportErrors({ succeeded: 0, failed: 0 })[0] ?? '', /^no request had a response/);
    assert.throws(() => parseH2loadReport('Could not connect\n'), /h2load printed no report: Could not connect/);
  });
});

async function listening(
  listener: RequestListener,
  { isTls = false } = {},
): Promise<AsyncDisposable & { readonly port: number }> {
  const { chain, key } = makeCertificate({ name: 'bench.example' });
  const server: Server = isTls ? createTlsServer({ cert: chain, key }, listener) : createServer(listener);
  await once(server.listen({ host: '127.0.0.1', port: 0 }), 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      await closed;
    },
  };
}
