import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort, temporaryDirectory } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { runWeirInProcess } from '../fixtures/weir-in-process.ts';

test('suspends and resumes on this node with --local, and shows the suspension everywhere', async () => {
  await using files = manifestDirectory();
  await using state = temporaryDirectory('state');
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  await using standalone = await startTestStandalone(files, ['--state', state.path]);
  await using client = await connectClient({ port });
  // No console is named, so the command can reach the proxy only through its socket.
  const local = (...args: string[]): ReturnType<typeof runWeirInProcess> =>
    runWeirInProcess([...args, '--local', '--state', state.path], { SUDO_USER: 'alice', HOME: '/nowhere' });
  const suspended = await local('suspend', 'shop', '--message', 'Redis is away', '--for', '1h');
  assert.equal(suspended.stderr, '');
  assert.match(
    suspended.stdout,
    /^tenant shop is suspended on node \S+ only, until 2\S+; `weir resume shop --local` on this node lifts the cut-off\n$/,
  );
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  await eventually(() => assert.rejects(connectClient({ port }), /ECONNREFUSED/));
  assert.match((await local('get', 'suspensions')).stdout, /tenant shop on node \S+ .* alice +Redis is away\n$/);
  await eventually(async () => {
    const { stdout } = await standalone.weir('explain', 'shop/web');
    assert.match(
      stdout,
      /Suspension local\.\S+\.tenant\.shop by alice since 2\S+, only on node \S+, until 2\S+: Redis/,
    );
  });
  assert.match((await standalone.weir('get', 'suspensions')).stdout, /tenant shop on node/);
  const refused = await standalone.weir('resume', 'shop');
  assert.equal(refused.code, 1);
  assert.match(refused.output, /holds only there; run `weir resume shop --local` on this node/);
  assert.match((await local('resume', 'shop')).stdout, /^the local cut-off of tenant shop on node \S+ is lifted\n$/);
  await using back = await eventually(() => connectClient({ port }));
  await back.send('x');
  assert.equal(String(await back.take(1)), 'x');
  const none = await local('resume', 'shop');
  assert.deepEqual([none.code, none.stderr], [1, 'weir: this node has no local cut-off of the target\n']);
  const unknown = await local('suspend', '--namespace', 'shpo', '--message', 'x');
  assert.match(unknown.stderr, /serves no Service of namespace shpo; check the name/);
});

test('finds the state directory of the only fleet below the given directory, and names those of several fleets', async () => {
  await using state = temporaryDirectory('state');
  const suspend = (): ReturnType<typeof runWeirInProcess> =>
    runWeirInProcess(['suspend', 'shop', '--message', 'x', '--local', '--state', state.path]);
  mkdirSync(`${state.path}/empty`);
  mkdirSync(`${state.path}/weir/proxy-n1`, { recursive: true });
  assert.match((await suspend()).stderr, /no proxy answers on \S+\/weir\/proxy-n1\/admin\.sock/);
  mkdirSync(`${state.path}/other/proxy-n1`, { recursive: true });
  const { code, stderr } = await suspend();
  assert.equal(code, 2);
  assert.match(
    stderr,
    /^weir: this node has proxies of 2 fleets; choose one: --state \S+\/other or --state \S+\/weir\n/,
  );
});

test('names the directory and the fix if no proxy is there', async () => {
  await using state = temporaryDirectory('state');
  const suspend = (directory: string): ReturnType<typeof runWeirInProcess> =>
    runWeirInProcess(['suspend', 'shop', '--message', 'x', '--local', '--state', directory]);
  for (const directory of [state.path, `${state.path}/none`]) {
    const { code, stderr } = await suspend(directory);
    assert.equal(code, 2);
    assert.match(
      stderr,
      /^weir: \S+ (has no directory of a proxy|cannot be read \(.*\)); run the command on a node as root/,
    );
  }
});
