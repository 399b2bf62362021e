// Follows the access log of a Service: from the request at a real proxy through its admin server and the console to the
// command.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { connectClient, echoServer, eventually, freePort, httpBackend } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { runWeirOnTerminal } from '../fixtures/weir-in-process.ts';

test('follows the access log of one Service, which standalone also writes to its standard output', async () => {
  await using files = manifestDirectory();
  await using backend = await httpBackend({ handler: (_request, response) => response.writeHead(404).end('x') });
  const [web, quiet] = [await freePort(), await freePort()];
  const annotations = { 'weir.dev/access-log': 'true' };
  files.write(
    'shop.yaml',
    service('web', { port: web, appProtocol: 'http', annotations }),
    endpointSlice('web', backend.port),
    service('quiet', { port: quiet, appProtocol: 'http' }),
    endpointSlice('quiet', backend.port),
  );
  await using fleet = await startTestStandalone(files);
  const env = { WEIR_SERVER: fleet.url };
  const stopping = new AbortController();
  let output = '';
  const following = runWeirOnTerminal(
    {
      env,
      signal: stopping.signal,
      onOutput: (all) => {
        output = all;
      },
    },
    ['logs', 'shop/web', '-o', 'json'],
  );
  // Requests that end before the command follows the log are not shown.
  let count = 0;
  await eventually(async () => {
    count += 1;
    await fetch(`http://127.0.0.1:${quiet}/quiet`);
    await fetch(`http://127.0.0.1:${web}/request-${count}?secret`);
    assert.ok(output.includes('\n'), 'the command has printed a line');
  });
  const [first = ''] = output.split('\n');
  const line = JSON.parse(first);
  assert.match(line.path, /^\/request-[0-9]+$/);
  assert.deepEqual(
    [line.namespace, line.service, line.client, line.method, line.status, line.endpoint],
    ['shop', 'web', '127.0.0.1', 'GET', 404, `127.0.0.1:${backend.port}`],
  );
  assert.ok(!output.includes('quiet') && !output.includes('secret'));
  // The output of standalone comes through a pipe of its own.
  await eventually(() => assert.ok(fleet.process.output().includes(first), 'standalone has written the same line'));
  stopping.abort();
  assert.deepEqual(await following, { code: 0, stdout: output, stderr: '' });
});

test('prints a table, and says how to turn the access log on', async () => {
  await using files = manifestDirectory();
  await using backend = await httpBackend({ handler: (_request, response) => response.writeHead(503).end('x') });
  const port = await freePort();
  const write = (annotations: Readonly<Record<string, string>>): void =>
    files.write(
      'shop.yaml',
      service('web', { port, appProtocol: 'http', annotations }),
      endpointSlice('web', backend.port),
    );
  write({});
  await using fleet = await startTestStandalone(files);
  const refused = await fleet.weir('logs', 'shop/web');
  assert.equal(refused.code, 1);
  assert.match(
    refused.output,
    /^weir: Service "shop\/web" has no access log; set the annotation weir.dev\/access-log: "true"/,
  );
  assert.equal((await fleet.weir('logs', 'shop/unknown')).code, 1);
  write({ 'weir.dev/access-log': '100%,query' });
  await eventually(async () =>
    assert.match((await fleet.weir('explain', 'shop/web')).stdout, /access log of all requests, with query strings/),
  );
  const stopping = new AbortController();
  let output = '';
  const following = runWeirOnTerminal(
    {
      env: { WEIR_SERVER: fleet.url },
      signal: stopping.signal,
      onOutput: (all) => {
        output = all;
      },
    },
    ['logs', 'shop/web'],
  );
  await eventually(async () => {
    await fetch(`http://127.0.0.1:${port}/x?y=1`);
    assert.match(
      output,
      /^\S+Z 503 +[0-9]+ ms +[0-9]+ B 127\.0\.0\.1 GET 127\.0\.0\.1\/x\?y=1 -> 127\.0\.0\.1:[0-9]+\n/,
    );
  });
  stopping.abort();
  assert.equal((await following).code, 0);
});

test('follows the connections of a Service without HTTP ports', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  const annotations = { 'weir.dev/access-log': 'true' };
  files.write('shop.yaml', service('db', { port, annotations }), endpointSlice('db', backend.port));
  await using fleet = await startTestStandalone(files);
  assert.match((await fleet.weir('explain', 'shop/db')).stdout, /access log of all connections/);
  const stopping = new AbortController();
  let output = '';
  const following = runWeirOnTerminal(
    {
      env: { WEIR_SERVER: fleet.url },
      signal: stopping.signal,
      onOutput: (all) => {
        output = all;
      },
    },
    ['logs', 'shop/db'],
  );
  await eventually(async () => {
    await using client = await connectClient({ port });
    await client.send('hello');
    await client.take(5);
    await client.end();
    await client.ended;
    assert.match(
      output,
      /^\S+Z completed +[0-9]+ ms 5 B received, 5 B sent 127\.0\.0\.1:[0-9]+ TCP 127\.0\.0\.1:[0-9]+ -> 127\.0\.0\.1:[0-9]+\n/,
    );
  });
  stopping.abort();
  assert.equal((await following).code, 0);
});
