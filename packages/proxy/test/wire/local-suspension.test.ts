import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, temporaryDirectory } from '@weir/testkit';
import type { LocalSuspensionResponse } from '../../src/status/local-suspension-requests.ts';
import { MAX_LOCAL_SUSPENSIONS } from '../../src/supervisor/local-suspensions.ts';
import { type Fleet, startFleet, waitForListenerReport } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

const RESET = { kind: 'error', code: 'ECONNRESET' };
const GAME_PORT = 9_090;

test('a local suspension without a store resets its target’s connections, leaves others alone, and outlives a restart', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-suspension');
  await using shop = await echoServer();
  await using games = await echoServer();
  await fleet.serve(
    webService([endpointOf(shop)]),
    webService([endpointOf(games)], { name: 'game', namespace: 'games', port: GAME_PORT }),
  );
  const first = await fleet.proxy({ stateDirectory: state.path });
  await first.ready;
  const host = fleet.addressOf();
  await using abuser = await connectClient({ host, port: PORT });
  await using other = await connectClient({ host, port: GAME_PORT });
  fleet.store.faults.goAway();
  const { status, json } = await send(state.path, 'POST', '/suspend?tenant=shop&message=Stop.&by=alice');
  assert.equal(status, 200);
  assert.deepEqual([json.node, json.services, json.saved], ['a', 1, true]);
  assert.deepEqual(await abuser.ended, RESET);
  await waitForListenerReport(first, { bound: true, listening: false });
  await assert.rejects(connectClient({ host, port: PORT }), { code: 'ECONNREFUSED' });
  await other.send('undisturbed');
  assert.equal(String(await other.take(11)), 'undisturbed');
  const [suspension] = first.view().localSuspensions ?? [];
  assert.equal(suspension?.name, 'local.a.tenant.shop');
  assert.deepEqual([suspension?.madeBy, suspension?.origin], ['alice', { kind: 'local', node: 'a' }]);

  await first.close({ drainMs: 0 });
  const second = await fleet.proxy({ stateDirectory: state.path });
  await second.ready;
  await assert.rejects(connectClient({ host, port: PORT }), { code: 'ECONNREFUSED' });
  assert.equal((await send(state.path, 'POST', '/resume?tenant=shop')).status, 200);
  await using back = await eventually(() => connectClient({ host, port: PORT }));
  await back.send('x');
  assert.equal((await send(state.path, 'POST', '/resume?tenant=shop')).status, 404);
});

test('a suspension in the store and a local suspension hold independently, and the heartbeat reports the local one', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-suspension');
  await using shop = await echoServer();
  await fleet.serve(webService([endpointOf(shop)]));
  const proxy = await fleet.proxy({ stateDirectory: state.path });
  await proxy.ready;
  await send(state.path, 'POST', '/suspend?namespace=shop&service=web&message=here');
  await eventually(async () => {
    const [heartbeat] = await fleet.heartbeats();
    assert.deepEqual(
      heartbeat?.localSuspensions?.map(({ message }) => message),
      ['here'],
    );
  });
  await fleet.cutOff({ kind: 'tenant', tenant: 'shop' }, 'c');
  await lifted(fleet, proxy, 'c');
  await assert.rejects(connectClient({ host: fleet.addressOf(), port: PORT }), { code: 'ECONNREFUSED' });
  await send(state.path, 'POST', '/resume?namespace=shop&service=web');
  await eventually(async () => {
    assert.equal((await fleet.heartbeats())[0]?.localSuspensions, undefined);
    await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
    await client.send('x');
  });
});

test('a local suspension ends at its end', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-suspension');
  const proxy = await fleet.proxy({ stateDirectory: state.path });
  await send(state.path, 'POST', '/suspend?tenant=shop&message=x&for=1s');
  assert.equal(proxy.view().localSuspensions?.length, 1);
  await eventually(() => assert.equal(proxy.view().localSuspensions, undefined));
});

test('both proxies of a node apply a local suspension during an upgrade', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-suspension');
  const older = await fleet.proxy({ stateDirectory: state.path });
  const newer = await fleet.proxy({ stateDirectory: state.path });
  await send(state.path, 'POST', '/suspend?tenant=shop&message=x');
  for (const proxy of [older, newer]) await eventually(() => assert.equal(proxy.view().localSuspensions?.length, 1));
  await send(state.path, 'POST', '/resume?tenant=shop');
  for (const proxy of [older, newer]) await eventually(() => assert.equal(proxy.view().localSuspensions, undefined));
});

test('refuses wrong requests and too many suspensions, and keeps suspensions if the file is damaged', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-suspension');
  const proxy = await fleet.proxy({ stateDirectory: state.path });
  const wrong: readonly [path: string, status: number, error: RegExp][] = [
    ['/suspend?message=x', 400, /expected tenant=NAME, namespace=NAME, or namespace=NAME&service=NAME/],
    ['/suspend?tenant=a&namespace=b&message=x', 400, /invalid target/],
    ['/suspend?service=a&message=x', 400, /invalid target/],
    ['/suspend?tenant=a&message=%20', 400, /invalid message/],
    [`/suspend?tenant=a&message=${'x'.repeat(513)}`, 400, /invalid message/],
    ['/suspend?tenant=a&message=x&for=soon', 400, /invalid for "soon"/],
  ];
  for (const [path, status, error] of wrong) {
    const response = await send(state.path, 'POST', path);
    assert.equal(response.status, status, path);
    assert.match(response.json.error, error);
  }
  assert.equal((await send(state.path, 'GET', '/suspend?tenant=a&message=x')).status, 405);
  for (let i = 0; i < MAX_LOCAL_SUSPENSIONS; i += 1)
    assert.equal((await send(state.path, 'POST', `/suspend?tenant=t${i}&message=x`)).status, 200);
  assert.equal((await send(state.path, 'POST', '/suspend?tenant=more&message=x')).status, 409);
  assert.equal((await send(state.path, 'POST', '/suspend?tenant=t0&message=again')).status, 200);
  writeFileSync(join(state.path, 'proxy-a', 'local-suspensions.json'), '{"version":1,"suspensions":[{}]}');
  assert.equal((await send(state.path, 'POST', '/resume?tenant=t0')).status, 200);
  assert.equal(proxy.view().localSuspensions?.length, MAX_LOCAL_SUSPENSIONS - 1);
  assert.equal((await send(state.path, 'GET', '/suspensions')).json.suspensions.length, MAX_LOCAL_SUSPENSIONS - 1);
});

async function lifted(fleet: Fleet, proxy: Awaited<ReturnType<Fleet['proxy']>>, uid: string): Promise<void> {
  const applied = async (): Promise<void> => {
    const { sequence } = await fleet.store.suspensions.read();
    await eventually(() => assert.equal(proxy.view().cutoffSequence, sequence));
  };
  await applied();
  await fleet.store.suspensions.remove(uid);
  await applied();
}

function send(
  state: string,
  method: string,
  path: string,
): Promise<{ status: number | undefined; json: LocalSuspensionResponse & { readonly error: string } }> {
  return new Promise((resolve, reject) => {
    request({ socketPath: join(state, 'proxy-a', 'admin.sock'), path, method }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode, json: JSON.parse(body) }));
    })
      .on('error', reject)
      .end();
  });
}
