import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectClient, echoServer, freePort } from '@weir/testkit';
import { endpointSlice, manifestDirectory, service } from '../fixtures/manifests.ts';
import { startWeirProcess } from '../fixtures/weir-process.ts';

const WITHOUT_CONSOLE = ['--console', 'off', '--workers', '1'];

test('serves the endpoints of the files and warns once if the kubeconfig does not exist', async () => {
  await using files = manifestDirectory();
  await using backend = await echoServer();
  const port = await freePort();
  files.write('shop.yaml', service('web', { port }), endpointSlice('web', backend.port));
  const kubeconfig = join(files.path, 'kubeconfig');
  const args = ['standalone', '-f', files.path, '--kubeconfig', kubeconfig, ...WITHOUT_CONSOLE];
  await using running = await startWeirProcess(args, { readyWhen: /^ready$/m });
  await running.waitForOutput(/^warning: .*\n/m);
  await using client = await connectClient({ port });
  await client.send('served');
  assert.equal(String(await client.take(6)), 'served');
  const warnings = running.output().match(/^.*EndpointsNotRefined.*$/gm) ?? [];
  assert.equal(warnings.length, 1, running.output());
  assert.match(
    warnings[0] ?? '',
    /Service shop\/web.*kubeconfig cannot be read: the file does not exist; name a kubeconfig with --kubeconfig; until the endpoints can be read, the endpoints in the files are used/,
  );
});
