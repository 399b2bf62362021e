// Tests gRPC between a client and a server of grpc-go, with a real proxy between them. The cases are in tools/go/grpc-peer.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { programPath, requireProgram } from '@weir/tools';
import { failed, PASSED } from '../../../src/upstream/health/check.ts';
import { checkGrpc } from '../../../src/upstream/health/grpc-check.ts';
import { AUTHORITY, FLEET_SECRET, terminatingTls } from '../../fixtures/certificates.ts';
import { type Fleet, startFleet } from '../../fixtures/fleet.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { webService } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';

const HTTP2 = { httpPorts: [PORT], http2Ports: [PORT] };
const CASES = ['unary', 'metadata', 'bidirectional', 'streams', 'deadline', 'status', 'large', 'ping', 'cancel'];

suite('grpc-go', requireProgram('grpc-peer'), () => {
  const cleanup = new AsyncDisposableStack();
  let endpoint: { readonly address: string; readonly port: number };
  before(async () => {
    endpoint = await startServer();
  });
  after(() => cleanup.disposeAsync());

  async function startServer(...args: string[]): Promise<typeof endpoint> {
    const readyWhen = /^ready \d+$/m;
    const server = cleanup.use(
      await spawnProcess({
        command: programPath('grpc-peer'),
        args: ['server', ...args],
        name: 'grpc-peer',
        readyWhen,
      }),
    );
    return { address: '127.0.0.1', port: Number(server.output().split(' ')[1]) };
  }

  async function serve(fleet: Fleet, service: TestService): Promise<void> {
    await fleet.serve(service);
    await (await fleet.proxy({ fleetSecret: FLEET_SECRET })).ready;
  }

  /** Runs a case. The client exits with 1 if a call does not end as it should; the error then contains the reason. */
  async function runCase(fleet: Fleet, name: string, ...tls: string[]): Promise<void> {
    const target = `${fleet.addressOf()}:${PORT}`;
    const { stderr } = await promisify(execFile)(programPath('grpc-peer'), ['client', target, name, ...tls]);
    assert.equal(stderr, '');
  }

  test('client and server understand each other without TLS', async (context) => {
    await using fleet = await startFleet();
    await serve(fleet, webService([endpoint], { settings: HTTP2 }));
    for (const name of CASES) await context.test(name, () => runCase(fleet, name));
  });

  test('client and server understand each other over TLS between client and proxy', async (context) => {
    await using fleet = await startFleet();
    await using folder = temporaryDirectory('grpc-go');
    const authority = join(folder.path, 'ca.pem');
    writeFileSync(authority, AUTHORITY.certificate);
    await serve(fleet, webService([endpoint], terminatingTls({ alpn: ['h2', 'http/1.1'], settings: HTTP2 })));
    for (const name of CASES) await context.test(name, () => runCase(fleet, name, authority, 'web.example'));
  });

  test('no call fails while the server ends each connection after a short time', async () => {
    await using fleet = await startFleet();
    const aging = await startServer('100ms');
    await serve(fleet, webService([aging], { settings: HTTP2 }));
    await runCase(fleet, 'goaway');
  });

  test('the health server of grpc-go passes the check of the whole endpoint, and fails that of an unknown service', async () => {
    const check = {
      kind: 'tcp',
      intervalMs: 1_000,
      timeoutMs: 1_000,
      healthyThreshold: 1,
      unhealthyThreshold: 1,
    } as const;
    const wanted = { key: '', endpoint, check, proxyProtocol: null, overTls: false, host: null };
    const { signal } = new AbortController();
    assert.deepEqual(await checkGrpc(wanted, '', signal), PASSED);
    const why = 'grpc-status 5 (NOT_FOUND): the endpoint does not know the health of this service';
    assert.deepEqual(await checkGrpc(wanted, 'shop.v1.Orders', signal), failed(why));
  });
});
