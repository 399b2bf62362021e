import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLogger } from '@weir/runtime';
import { connectClient, echoServer, eventually, temporaryDirectory } from '@weir/testkit';
import { openLocalAdmin } from '../../src/status/local-admin.ts';
import { startFleet } from '../fixtures/fleet.ts';
import { PORT } from '../fixtures/listen-address.ts';
import { endpointOf, webService } from '../fixtures/services.ts';

test('a CPU profile of a worker is taken while it relays, by nobody but the own user', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-admin');
  await using backend = await echoServer();
  await fleet.serve(webService([endpointOf(backend)]));
  const proxy = await fleet.proxy({ stateDirectory: state.path });
  await proxy.ready;
  const socketPath = join(state.path, 'proxy-a', 'admin.sock');
  assert.equal(statSync(socketPath).mode & 0o777, 0o600);
  await using client = await connectClient({ host: fleet.addressOf(), port: PORT });
  // A profile is samples: of a worker that hardly ran they may have missed what it did.
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

test('what is asked for wrongly is told, and a drain ends the proxy in good order', async () => {
  await using fleet = await startFleet();
  await using state = temporaryDirectory('local-admin');
  const proxy = await fleet.proxy({ stateDirectory: state.path, workers: 2 });
  const socketPath = join(state.path, 'proxy-a', 'admin.sock');
  const wrong: [string, number, RegExp][] = [
    ['/', 404, /POST \/profile\?worker=0&seconds=5 or POST \/drain/],
    ['//', 400, /not a path/],
    ['http://[', 400, /not a path/],
    ['/profile?worker=2', 400, /invalid worker \\"2\\": expected an integer from 0 to 1/],
    ['/profile?seconds=61', 400, /invalid seconds \\"61\\": expected a number above 0, up to 60/],
  ];
  for (const [path, status, says] of wrong) {
    const answer = await post(socketPath, path);
    assert.equal(answer.status, status);
    assert.match(answer.body, says);
  }
  assert.equal((await post(socketPath, '/drain')).status, 202);
  assert.equal(proxy.view().draining, true);
  await proxy.close();
  assert.throws(() => statSync(socketPath), { code: 'ENOENT' });
});

test('of one worker there is one profile at a time; who asks for another is told so at once', async () => {
  await using state = temporaryDirectory('local-admin');
  const path = join(state.path, 'admin.sock');
  const asked: PromiseWithResolvers<string>[] = [];
  const admin = await openLocalAdmin({
    path,
    workers: 2,
    log: silentLogger(),
    drain: () => assert.fail('nobody asked'),
    profile() {
      const profile = Promise.withResolvers<string>();
      asked.push(profile);
      return profile.promise;
    },
  });
  const first = post(path, '/profile?worker=0');
  await eventually(() => assert.equal(asked.length, 1));
  const second = await post(path, '/profile?worker=0');
  assert.equal(second.status, 409);
  assert.match(second.body, /worker 0 is already being profiled; try again/);
  const other = post(path, '/profile?worker=1');
  await eventually(() => assert.equal(asked.length, 2));
  asked[0]?.reject(new Error('the worker ended'));
  assert.equal((await first).status, 500);
  const third = post(path, '/profile?worker=0');
  await eventually(() => assert.equal(asked.length, 3));
  for (const { resolve } of asked) resolve('{}');
  assert.equal((await other).status, 200);
  assert.equal((await third).status, 200);
  await admin.close();
});

test('the socket is that of the newest proxy, and an older one that ends leaves it there', async () => {
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
