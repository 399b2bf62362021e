import assert from 'node:assert/strict';
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { connectClient, echoServer, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { insideNamespace } from '../src/index.ts';

const namespace = insideNamespace({
  addresses: ['10.250.0.1', '10.244.1.2'],
  sysctls: { 'net/ipv4/ip_local_port_range': '40000 40999' },
});

const here = namespace.skip ? '' : readlinkSync('/proc/self/ns/net');

describe('a test file in its own network namespace', namespace, () => {
  test('has the requested addresses and no route to other networks', async () => {
    assert.deepEqual(Object.keys(networkInterfaces()), ['lo']);
    await using server = await echoServer({ host: '10.244.1.2' });
    await using client = await connectClient({ host: '10.244.1.2', port: server.port, localAddress: '10.250.0.1' });
    await client.send('hello');
    assert.equal(String(await client.take(5)), 'hello');
    await assert.rejects(connectClient({ host: '192.0.2.1', port: 80 }), /ENETUNREACH/);
  });

  test('has the requested sysctls', async () => {
    assert.match(readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8'), /40000\s+40999/);
    await using server = await echoServer();
    assert.ok(server.port >= 40_000 && server.port <= 40_999);
  });

  test('reports failures to the test runner outside of the namespace', async () => {
    await using folder = temporaryDirectory('namespace');
    const file = join(folder.path, 'inner.test.ts');
    writeFileSync(file, innerFile);
    const { WEIR_OUTER_NAMESPACE: _, NODE_TEST_CONTEXT: __, ...env } = process.env;
    const runner = await spawnProcess({
      command: process.execPath,
      args: ['--conditions=source', '--test', '--test-reporter=spec', file],
      env,
      mayExit: true,
    });
    assert.equal((await runner.exited).code, 1);
    assert.match(runner.output(), /✔ runs in a different namespace/);
    assert.match(runner.output(), /✖ fails/);
    assert.match(runner.output(), /pass 1\n.*fail 1\n/);
  });
});

const innerFile = `
import assert from 'node:assert/strict';
import { readlinkSync } from 'node:fs';
import { test } from 'node:test';
import { insideNamespace } from '${new URL('../src/index.ts', import.meta.url)}';
const options = insideNamespace();
test('runs in a different namespace', options, () => {
  assert.notEqual(readlinkSync('/proc/self/ns/net'), ${JSON.stringify(here)});
});
test('fails', options, () => assert.fail('intended failure'));
`;
