// Runs h2spec against a real proxy whose endpoint speaks HTTP/1.1.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { programPath, requireProgram } from '@weir/tools';
import { FLEET_SECRET, terminatingTls } from '../../fixtures/certificates.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { webService } from '../../fixtures/services.ts';

/** The cases of h2spec 2.2, with the strict ones. */
const CASES = 146;
/** A port without TLS serves HTTP/1.1 too, and so answers this text with 400 before the connection ends. h2spec expects only the end. */
const NOT_ONLY_HTTP2 = 'Sends invalid connection preface';
const TLS_PORT = PORT + 1;

suite('h2spec in front of an endpoint of HTTP/1.1', requireProgram('h2spec'), () => {
  let endpoint: Server;
  let fleet: Fleet;
  let served = 0;
  before(async () => {
    endpoint = createServer((request, response) => {
      served += 1;
      request.on('error', () => undefined);
      request.resume().on('end', () => response.end('Hello, world!\n'));
    });
    await once(endpoint.listen(0, '127.0.0.1'), 'listening');
    fleet = await startFleet();
    const endpoints = [{ address: '127.0.0.1', port: (endpoint.address() as AddressInfo).port }];
    const { certificate, settings } = terminatingTls({ settings: { httpPorts: [TLS_PORT] } });
    assert.ok(certificate && settings?.tls);
    const tls = { ...settings.tls, ports: [{ port: TLS_PORT, alpn: ['h2', 'http/1.1'] }] };
    await fleet.serve(
      webService(endpoints, { settings: { httpPorts: [PORT] } }),
      webService(endpoints, { name: 'tls', port: TLS_PORT, certificate, settings: { ...settings, tls } }),
    );
    await (await fleet.proxy({ fleetSecret: FLEET_SECRET })).ready;
  });
  after(async () => {
    await fleet[Symbol.asyncDispose]();
    endpoint.closeAllConnections();
    endpoint.close();
  });

  for (const { name, port, more, failing } of [
    { name: 'over TLS', port: TLS_PORT, more: ['--tls', '--insecure'], failing: [] },
    { name: 'without TLS', port: PORT, more: [], failing: [NOT_ONLY_HTTP2] },
  ]) {
    test(`${name}, passes all cases for a port of HTTP/2, also the strict ones`, async (context) => {
      const report = await runH2spec(['--strict', '--host', fleet.addressOf(), '--port', String(port), ...more]);
      const summary = /^(\d+) tests, (\d+) passed, (\d+) skipped, (\d+) failed$/m.exec(report);
      context.diagnostic(summary?.[0] ?? report);
      const failed = [
        ...report
          .split('\nFailures:')
          .slice(0, 1)
          .join('')
          .matchAll(/× \d+: (.*)$/gm),
      ].map(([, title]) => title);
      assert.deepEqual(failed, failing);
      assert.ok(served > 0, 'the endpoint has answered the requests');
      served = 0;
      assert.deepEqual(summary?.slice(1).map(Number), [CASES, CASES - failing.length, 0, failing.length]);
    });
  }
});

/** Returns the report of h2spec, which exits with 1 if a case has failed. */
async function runH2spec(args: readonly string[]): Promise<string> {
  try {
    return (await promisify(execFile)(programPath('h2spec'), args)).stdout;
  } catch (error) {
    return (error as { readonly stdout: string }).stdout;
  }
}
