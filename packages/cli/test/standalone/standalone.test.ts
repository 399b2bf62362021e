import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort, httpBackend } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service, suspension, tenantPolicy } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { runWeirProcess, startWeirProcess } from '../fixtures/weir-process.ts';

test('serves a Service of a manifest and reports its address', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  const { code, json } = await fleet.weir('get', 'services', '-o', 'json');
  assert.equal(code, 0);
  const [web] = json.items;
  assert.deepEqual([web.state, web.addresses], ['Programmed', ['127.0.0.1']]);
  assert.deepEqual([web.ports[0].bound, web.ports[0].listening], [true, true]);
  await using client = await connectClient({ port });
  await client.send('hello');
  assert.equal((await client.take(5)).toString(), 'hello');
});

test("counts usage that equals the clients' counts to the byte", async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  const bytes = 100_000;
  await Promise.all(
    Array.from({ length: 20 }, async () => {
      await using client = await connectClient({ port, expectPattern: 7 });
      await client.sendPattern({ bytes, seed: 7 });
      await client.end();
      assert.deepEqual(await client.ended, { kind: 'end' });
      assert.equal(client.received, bytes);
    }),
  );
  await eventually(async () => {
    const [shop] = (await fleet.weir('usage', '-o', 'json')).json.items;
    const { receivedBytes, sentBytes, connections, services } = shop;
    assert.deepEqual(
      { receivedBytes, sentBytes, connections },
      { receivedBytes: 20 * bytes, sentBytes: 20 * bytes, connections: 20 },
    );
    assert.equal(services[0].receivedBytes, 20 * bytes);
  });
});

test('weir explain lists unhealthy endpoints with the reason', async () => {
  await using files = manifestDirectory();
  const port = await freePort();
  const annotations = {
    'weir.dev/health-check': 'tcp',
    'weir.dev/health-check-interval': '1s',
    'weir.dev/health-check-unhealthy': '1',
  };
  const closed = await freePort();
  files.write('shop.yaml', service('web', { port, annotations }), endpointSlice('web', closed));
  await using fleet = await startTestStandalone(files);
  await eventually(async () => {
    const { stdout } = await fleet.weir('explain', 'shop/web');
    assert.match(
      stdout,
      /health-check tcp every 1s, timeout 1s; unhealthy after 1 failed check, healthy after 1 passed check/,
    );
    assert.ok(
      stdout.includes(
        `127.0.0.1:${closed} for ${port}/TCP, reported by local: its tcp check fails: ECONNREFUSED; still used`,
      ),
      stdout,
    );
  });
});

test('uses terminating endpoints that still serve without counting them as ready', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  const conditions = { ready: false, serving: true, terminating: true };
  const leaving = {
    ...(endpointSlice('web', backend.port) as object),
    endpoints: [{ addresses: ['127.0.0.1'], conditions }],
  };
  files.write('shop.yaml', service('web', { port }), leaving);
  await using fleet = await startTestStandalone(files);
  const { stdout } = await fleet.weir('explain', 'shop/web');
  assert.ok(stdout.includes(`${port}/TCP: 0 ready; 1 in use while terminating (127.0.0.1:${backend.port})`), stdout);
  const { json } = await fleet.weir('get', 'services', '-o', 'json');
  assert.deepEqual(json.items[0].endpoints, { ready: 0, total: 1 });
  await using client = await connectClient({ host: '127.0.0.1', port });
  await client.send('hello');
  assert.equal(String(await client.take(5)), 'hello');
});

test('routes new connections by an edited file and keeps open connections', async () => {
  await using files = manifestDirectory();
  await using before = await echoServer();
  await using after = await httpBackend({ name: 'after' });
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', before.port));
  await using fleet = await startTestStandalone(files);
  await using client = await connectClient({ port });
  await client.send('one');
  await client.take(3);
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', after.port));
  await eventually(async () =>
    assert.equal(
      await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } })).text(),
      'after\n',
    ),
  );
  await client.send('two');
  assert.equal((await client.take(3)).toString(), 'two');
  assert.ok(fleet.url);
});

test('suspends and resumes a tenant without closing connections of other tenants', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const [shop, game] = [await freePort(), await freePort()];
  files.write('shop.yaml', service('web', { port: shop }), endpointSlice('web', backend.port));
  files.write(
    'game.yaml',
    service('arena', { port: game, namespace: 'game' }),
    endpointSlice('arena', backend.port, { namespace: 'game' }),
  );
  await using fleet = await startTestStandalone(files);
  await using shopper = await connectClient({ port: shop });
  await using player = await connectClient({ port: game });
  await shopper.send('x');
  await shopper.take(1);
  const suspended = await fleet.weir('suspend', 'shop', '--message', 'You fill the link.');
  assert.equal(suspended.code, 0, suspended.output);
  assert.deepEqual(await shopper.ended, { kind: 'error', code: 'ECONNRESET' });
  await eventually(() => assert.rejects(connectClient({ port: shop }), /ECONNREFUSED/));
  await player.send('x');
  await player.take(1);
  const explained = await fleet.weir('explain', 'shop/web');
  assert.equal(explained.code, 1);
  assert.match(explained.stdout, /Suspended \(SuspendedByOperator\)\n +You fill the link\./);
  const resumed = await fleet.weir('resume', 'shop');
  assert.equal(resumed.code, 0, resumed.output);
  await eventually(async () => {
    await using again = await connectClient({ port: shop });
    await again.send('x');
    await again.take(1);
  });
  assert.match((await fleet.weir('resume', 'shop')).output, /tenant shop has no Suspension/);
});

test('weir resume names the file of a Suspension that a file contains', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  files.write('stop.yaml', suspension('by-hand', 'shop', 'Stop.'));
  await using fleet = await startTestStandalone(files);
  await eventually(async () => {
    const { code, output } = await fleet.weir('resume', 'shop');
    assert.equal(code, 1, output);
    assert.match(output, /Suspension "by-hand" comes from .*stop\.yaml; delete it in that file/);
  });
  files.remove('stop.yaml');
  await eventually(async () => {
    await using client = await connectClient({ port });
    await client.send('x');
    await client.take(1);
  });
});

test('prints problems when they appear and when they are resolved', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const [one, two] = [await freePort(), await freePort()];
  files.write('a.yaml', service('api', { port: one }), endpointSlice('api', backend.port));
  files.write('b.yaml', service('web', { port: two }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  files.write('policy.yaml', tenantPolicy('shop', { services: 1 }));
  await fleet.process.waitForOutput(/OverLimit|QuotaExceeded/);
  const problems = await fleet.weir('get', 'problems');
  assert.match(problems.stdout, /shop\/(web|api)/);
  files.remove('policy.yaml');
  await fleet.process.waitForOutput(/^resolved: .*(OverLimit|QuotaExceeded)/m);
});

test('runs a proxy for each node of --node', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort('127.0.0.2');
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files, ['--node', 'a=127.0.0.2', '--node', 'b=127.0.0.3']);
  for (const host of ['127.0.0.2', '127.0.0.3']) {
    await using client = await connectClient({ host, port });
    await client.send('x');
    await client.take(1);
  }
  const { json } = await fleet.weir('get', 'proxies', '-o', 'json');
  assert.deepEqual(
    json.items.map((proxy: { node: string; state: string; transport: string }) => [
      proxy.node,
      proxy.state,
      proxy.transport,
    ]),
    [
      ['a', 'Serving', 'syscalls'],
      ['b', 'Serving', 'syscalls'],
    ],
  );
  const { stdout } = await fleet.weir('get', 'proxies');
  assert.match(stdout, /^NODE .* TRANSPORT +REASON$/m);
  assert.match(stdout, /^a .* syscalls +-$/m);
});

test('weir top prints one frame if stdout is not a terminal', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  files.write('shop.yaml', service('web', { port: await freePort() }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  const [asText, asJson] = await Promise.all([fleet.weir('top'), fleet.weir('top', '--once', '-o', 'json')]);
  assert.match(asText.stdout, /^shop +0 bit\/s +0 bit\/s/m);
  assert.equal(asJson.json.tenants[0].name, 'shop');
  assert.match((await fleet.weir('top', '--tenant', 'shpo')).output, /unknown tenant "shpo"/);
});

test('says how many connections it waits for when it stops, and does not open the inspector', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files);
  fleet.process.signal('SIGUSR1');
  await using client = await connectClient({ port });
  await eventually(async () => {
    const { json } = await fleet.weir('get', 'proxies', '-o', 'json');
    assert.equal(json.items[0].connections, 1);
  });
  fleet.process.signal('SIGTERM');
  await fleet.process.waitForOutput(/^waiting for 1 open connection to end, .*a second Ctrl-C or SIGTERM/m);
  await client.close();
  assert.deepEqual(await fleet.process.exited, { code: 0, signal: null });
  assert.doesNotMatch(fleet.process.output(), /Debugger/);
});

test('exits with 0 on SIGTERM and releases its ports', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  const fleet = await startTestStandalone(files);
  assert.deepEqual(await fleet.process.stop('SIGTERM'), { code: 0, signal: null });
  await assert.rejects(connectClient({ port }), /ECONNREFUSED/);
});

test('prints `ready` without a URL if the console is off', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  files.write('shop.yaml', service('web', { port: await freePort() }), endpointSlice('web', backend.port));
  await using fleet = await startTestStandalone(files, ['--console', 'off']);
  assert.match(fleet.process.output(), /^ready$/m);
});

test('suggests --classless if no Service has the class', async () => {
  await using files = manifestDirectory();
  files.write('shop.yaml', service('web', { loadBalancerClass: null }));
  await using fleet = await startTestStandalone(files);
  await fleet.process.waitForOutput(/--classless/);
});

test('warns about limits of this host before it is ready', async () => {
  await using files = manifestDirectory();
  const args = ['standalone', '-f', files.path, '--workers', '1', '--console', 'off'];
  await using fleet = await startWeirProcess(args, { readyWhen: /^ready/m, shell: 'ulimit -n 1024' });
  assert.match(
    fleet.output(),
    /^warning: at most 1024 files may be open, .*; raise LimitNOFILE or ulimit -n\n(.*\n)*ready$/m,
  );
});

test('warns before it is ready if every client is trusted to send a PROXY header', async () => {
  await using files = manifestDirectory();
  await using fleet = await startTestStandalone(files, ['--trust-proxy-protocol', '0.0.0.0/0']);
  assert.match(fleet.process.output(), /^warning: 0\.0\.0\.0\/0 trusts every client(.*\n)*ready/m);
});

test('exits with 2 and one line if it cannot start', async () => {
  await using files = manifestDirectory();
  await using occupied = await echoServer();
  files.write('shop.yaml', service('web'));
  const validArgs = ['standalone', '-f', files.path];
  const cases: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [['standalone', '-f', '/nowhere'], /-f \/nowhere: does not exist/],
    [
      [...validArgs, '--console', `127.0.0.1:${occupied.port}`],
      /cannot listen on 127\.0\.0\.1:\d+: the port is in use.*--console/,
    ],
    [[...validArgs, '--console', '0.0.0.0:0'], /must not listen on 0\.0\.0\.0 without authentication/],
    [[...validArgs, '--console', 'here'], /Use HOST:PORT, such as 127\.0\.0\.1:8686, or off/],
    [[...validArgs, '--workers', '0'], /Use an integer from 1 to 128/],
    [[...validArgs, '--redis', 'http://x'], /--redis: .*use redis:\/\//],
    [
      [...validArgs, '--redis', `redis://:secret@127.0.0.1:${await freePort()}`],
      /--redis: Redis at .* refuses the connection/,
    ],
    [[...validArgs, '--trust-proxy-protocol', '10.0.0.1'], /Use a network such as 192\.0\.2\.0\/24/],
    [[...validArgs, '--trust-forwarded', '10.0.0.1'], /Use a network such as 192\.0\.2\.0\/24/],
  ];
  for (const [args, message] of cases) {
    const { code, output } = await runWeirProcess(args);
    assert.equal(code, 2, `${args.join(' ')}: ${output}`);
    assert.match(output, message);
    assert.doesNotMatch(output, /\n +at |secret/);
  }
});
