import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { temporaryDirectory } from '@weir/testkit';
import { ReloadingKubeApi } from '../../src/kubernetes/kube-api.ts';

const REQUEST = { method: 'GET', path: '/who' } as const;

/** Starts an API server that returns its name and the token of the request. */
async function startNamedServer(context: TestContext, name: string): Promise<string> {
  const server = createServer(({ headers }, response) => {
    response.end(JSON.stringify({ name, token: headers.authorization }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function kubeconfig(server: string, token: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'a',
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    clusters: [{ name: 'a', cluster: { server, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'a', user: { token } }],
  });
}

describe('ReloadingKubeApi', () => {
  test('uses the current kubeconfig, even if the file was missing or broken before', async (context) => {
    const directory = temporaryDirectory('kubeconfig');
    context.after(() => directory.close());
    const path = join(directory.path, 'kubeconfig');
    const write = (text: string): void => {
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    };
    const api = new ReloadingKubeApi(path);
    context.after(() => api.close());
    await assert.rejects(api.request(REQUEST), {
      code: 'UNAUTHORIZED',
      message: `${path} cannot be read: the file does not exist; name a kubeconfig with --kubeconfig`,
    });
    const [first, second] = [await startNamedServer(context, 'first'), await startNamedServer(context, 'second')];
    write(kubeconfig(first, 'one'));
    assert.deepEqual(await api.request(REQUEST), { name: 'first', token: 'Bearer one' });
    write(kubeconfig(first, 'two'));
    assert.deepEqual(await api.request(REQUEST), { name: 'first', token: 'Bearer two' });
    write('users: [{secret');
    await assert.rejects(
      api.request(REQUEST),
      (error: Error) => /cannot be read/.test(error.message) && !/secret/.test(error.message),
    );
    write(kubeconfig(second, 'two'));
    assert.deepEqual(await api.request(REQUEST), { name: 'second', token: 'Bearer two' });
  });
});
