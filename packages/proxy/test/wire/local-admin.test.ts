import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger, systemClock } from '@weir/runtime';
import { connectClient, echoServer, eventually, temporaryDirectory } from '@weir/testkit';
import { openLocalAdmin } from '../../src/status/local-admin.ts';
import { LocalSuspensions } from '../../src/supervisor/local-suspensions.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

test('takes a CPU profile of a worker while it relays, on a socket of mode 0600', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-admin');
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const proxy = await fleet.proxy({ stateDirectory: state.path });
  await proxy.ready;
  const socketPath = join(state.path, 'proxy-a', 'admin.sock');
  assert.equal(statSync(socketPath).mode & 0o777, 0o600);
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  // Repeats the profile, because a profile with few samples may miss the function `onData`.
  await eventually(async () => {
    const profiled = post(socketPath, '/profile?worker=0&seconds=0.5');
    let rounds = 0;
    const over = profiled.then(() => true);
    while (!(await Promise.race([over, echo(client)]))) rounds += 1;
    const { status, body } = await profiled;
    assert.equal(status, 200);
    assert.ok(rounds > 0);
    const profile = JSON.parse(body) as { nodes: { callFrame: { functionName: string } }[] };
    assert.ok(profile.nodes.some(({ callFrame }) => callFrame.functionName === 'onData'));
  });
});

test('rejects invalid requests, and drains on request', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-admin');
  const proxy = await fleet.proxy({ stateDirectory: state.path, workers: 2 });
  const socketPath = join(state.path, 'proxy-a', 'admin.sock');
  const wrong: [string, number, RegExp][] = [
    ['/', 404, /POST \/profile\?worker=0&seconds=5, POST \/drain/],
    ['//', 400, /not a path/],
    ['http://[', 400, /not a path/],
    ['/profile?worker=2', 400, /invalid worker \\"2\\": expected an integer from 0 to 1/],
    ['/profile?seconds=61', 400, /invalid seconds \\"61\\": expected a number above 0, up to 60/],
  ];
  for (const [path, status, message] of wrong) {
    const response = await post(socketPath, path);
    assert.equal(response.status, status);
    assert.match(response.body, message);
  }
  assert.equal((await post(socketPath, '/drain')).status, 202);
  assert.equal(proxy.view().draining, true);
  await proxy.close();
  assert.throws(() => statSync(socketPath), { code: 'ENOENT' });
});

test('takes one profile per worker at a time, and rejects a second request at once', async () => {
  await using state = temporaryDirectory('local-admin');
  const path = join(state.path, 'admin.sock');
  const profiles: PromiseWithResolvers<string>[] = [];
  const admin = await openLocalAdmin({
    path,
    workers: 2,
    log: silentLogger(),
    drain: () => assert.fail('drained'),
    suspensions: {
      node: 'a',
      suspensions: new LocalSuspensions({
        path: join(state.path, 'local-suspensions.json'),
        node: 'a',
        clock: systemClock,
        log: silentLogger(),
        onChange: () => assert.fail('suspended'),
      }),
      table: () => undefined,
      untilApplied: async () => assert.fail('suspended'),
      now: () => systemClock.now(),
    },
    profile() {
      const profile = Promise.withResolvers<string>();
      profiles.push(profile);
      return profile.promise;
    },
  });
  const first = post(path, '/profile?worker=0');
  await eventually(() => assert.equal(profiles.length, 1));
  const second = await post(path, '/profile?worker=0');
  assert.equal(second.status, 409);
  assert.match(second.body, /worker 0 is already being profiled; try again/);
  const other = post(path, '/profile?worker=1');
  await eventually(() => assert.equal(profiles.length, 2));
  profiles[0]?.reject(new Error('the worker ended'));
  assert.equal((await first).status, 500);
  const third = post(path, '/profile?worker=0');
  await eventually(() => assert.equal(profiles.length, 3));
  for (const { resolve } of profiles) resolve('{}');
  assert.equal((await other).status, 200);
  assert.equal((await third).status, 200);
  await admin.close();
});

test('the newest proxy has the socket, and keeps it when an older proxy ends', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-admin');
  const first = await fleet.proxy({ stateDirectory: state.path });
  const second = await fleet.proxy({ stateDirectory: state.path });
  await first.close();
  assert.equal((await post(join(state.path, 'proxy-a', 'admin.sock'), '/drain')).status, 202);
  assert.equal(second.view().draining, true);
});

async function echo(client: Awaited<ReturnType<typeof connectClient>>): Promise<false> {
  await client.send('x');
  await client.take(1);
  return false;
}

function post(socketPath: string, path: string): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path, method: 'POST' }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => {
        body += text;
      });
      response.on('end', () => resolve({ status: response.statusCode, body }));
    })
      .on('error', reject)
      .end();
  });
}
