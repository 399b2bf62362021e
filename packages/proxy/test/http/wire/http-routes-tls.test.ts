import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request as requestHttp1 } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import { FLEET_SECRET, TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { startFleet } from '../../fixtures/fleet.ts';
import { BACKEND_PORT, matchOf, type Received, routeEntry, startBackend } from '../../fixtures/http-routes.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import { uidOf } from '../../fixtures/tables.ts';

test('a client with TLS finds the backends by the hosts of the HTTP routes', async (context) => {
  await using fleet = await startFleet();
  await using web = await startBackend('web');
  await using api = await startBackend('api');
  const hosts = ['web.example'];
  const ofOther = { service: uidOf({ namespace: 'other', name: 'game' }), port: BACKEND_PORT, weight: 1 };
  fleet.route(
    routeEntry('web', { web: 1 }, { hosts }),
    routeEntry('api', { api: 1 }, { hosts, matches: [matchOf('/api')] }),
    routeEntry('none', { missing: 1, web: 0 }, { hosts, matches: [matchOf('/none')] }),
    routeEntry('game', {}, { hosts: ['game.example'], backends: [ofOther] }),
  );
  const { certificate, settings } = terminatingTls();
  const overTls = { certificate: certificate as NonNullable<typeof certificate>, settings: settings ?? {} };
  const game = { ...web.service({ ...overTls, namespace: 'other', tenant: 'shop' }), name: 'game' };
  await fleet.serve(web.service(overTls), api.service(overTls), game);
  await (await fleet.proxy({ fleetSecret: FLEET_SECRET })).ready;
  const statusAndService = async (socket: TLSSocket, host: string, path: string): Promise<string> => {
    const createConnection = (): TLSSocket => socket;
    const request = requestHttp1({ createConnection, path, headers: { host, connection: 'keep-alive' } }).end();
    const [response] = await once(request, 'response');
    const body = await text(response);
    return response.statusCode === 200 ? (JSON.parse(body) as Received).service : String(response.statusCode);
  };
  const open = async (servername: string): Promise<TLSSocket> => {
    const socket = connectTls({ ...TRUSTING_CLIENT, host: fleet.addressOf(), port: PORT, servername });
    context.after(() => socket.destroy());
    await once(socket, 'secureConnect');
    return socket;
  };
  for (const [path, expected] of [
    ['/', 'web'],
    ['/api/a', 'api'],
    ['/none', '500'],
  ] as const)
    assert.equal(await statusAndService(await open('web.example'), 'web.example', path), expected, path);
  const gameClient = await open('game.example');
  assert.equal(await statusAndService(gameClient, 'game.example', '/'), 'web', 'the endpoint of web serves game');
  // The connection has the certificate of `web.example` from another namespace.
  assert.equal(await statusAndService(await open('web.example'), 'game.example', '/'), '421');
  assert.equal(await statusAndService(await open('web.example'), 'unknown.example', '/'), '421');
  await assert.rejects(open('unknown.example'), { code: 'ERR_SSL_TLSV1_UNRECOGNIZED_NAME' });
});
