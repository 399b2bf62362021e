// Tests Services that share a host by path and have different certificates, as they do while their owner renames the Secret.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Certificate, connectClient, httpBackend, makeCertificate } from '@weir/testkit';
import { AUTHORITY, FLEET_SECRET, SERVER, TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { startFleet, waitForTable } from '../../fixtures/fleet.ts';
import { ask } from '../../fixtures/http-worker.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { endpointOf } from '../../fixtures/services.ts';
import type { TestService } from '../../fixtures/tables.ts';

const HOST = 'web.example';
const RENEWED = makeCertificate({ name: HOST, issuer: AUTHORITY });
const ELSEWHERE = makeCertificate({ name: 'elsewhere.example', issuer: AUTHORITY });

interface SharerOptions {
  readonly certificate: Certificate;
  readonly secret: string;
  readonly authority?: Certificate;
}

function sharer(
  name: string,
  backend: { readonly host: string; readonly port: number },
  { secret, ...options }: SharerOptions,
): TestService {
  const { certificate, settings } = terminatingTls(options);
  assert.ok(certificate && settings?.tls);
  const pathPrefix = name === 'web' ? {} : { pathPrefix: `/${name}` };
  return {
    name,
    port: PORT,
    shared: true,
    endpoints: [endpointOf(backend)],
    certificate,
    settings: { hosts: [HOST], httpPorts: [PORT], ...pathPrefix, tls: { ...settings.tls, secret } },
  };
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;

test('serves every step of a rename of the Secret, also on connections with the other certificate', async () => {
  await using fleet = await startFleet();
  await using web = await httpBackend({ name: 'web' });
  await using api = await httpBackend({ name: 'api' });
  const [before, after] = [
    { certificate: SERVER, secret: 'one' },
    { certificate: RENEWED, secret: 'two' },
  ];
  await fleet.serve(sharer('web', web, before), sharer('api', api, before));
  const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
  await proxy.ready;
  const connect = (): ReturnType<typeof connectClient> =>
    connectClient({ host: fleet.addressOf(), port: PORT, tls: TRUSTING_CLIENT });
  await using kept = await connect();
  for (const [ofWeb, ofApi] of [
    [before, before],
    [after, before],
    [after, after],
  ] as const) {
    await fleet.serve(sharer('web', web, ofWeb), sharer('api', api, ofApi));
    await waitForTable(fleet, proxy);
    await using fresh = await connect();
    for (const client of [kept, fresh]) {
      assert.deepEqual(await ask(client, get('/')), { status: 200, body: 'web\n', closes: false });
      assert.deepEqual(await ask(client, get('/api')), { status: 200, body: 'api\n', closes: false });
    }
  }
});

test('shows a certificate for the host, whichever Service has it', async () => {
  await using fleet = await startFleet();
  await using backend = await httpBackend({ name: 'pod' });
  for (const [api, web] of [
    [ELSEWHERE, SERVER],
    [SERVER, ELSEWHERE],
  ] as const) {
    await fleet.serve(
      sharer('web', backend, { certificate: web, secret: 'one' }),
      sharer('api', backend, { certificate: api, secret: 'two' }),
    );
    const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
    await proxy.ready;
    // The client verifies the name in the certificate.
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT, tls: TRUSTING_CLIENT });
    for (const path of ['/', '/api']) assert.equal((await ask(client, get(path))).status, 200);
    await proxy.close({ drainMs: 0 });
  }
});

test('refuses requests for a Service that asks clients for other certificates', async () => {
  await using fleet = await startFleet();
  await using backend = await httpBackend({ name: 'pod' });
  // Translation never gives the host to both Services.
  await fleet.serve(
    sharer('web', backend, { certificate: SERVER, secret: 'one' }),
    sharer('strict', backend, { certificate: ELSEWHERE, secret: 'two', authority: AUTHORITY }),
  );
  const proxy = await fleet.proxy({ fleetSecret: FLEET_SECRET });
  await proxy.ready;
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT, tls: TRUSTING_CLIENT });
  assert.equal((await ask(client, get('/'))).status, 200);
  assert.equal((await ask(client, get('/strict'))).status, 421);
  assert.equal(backend.requests, 1);
});
