// The admin server of the controller process works even while the API server and Redis are unreachable.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { eventually, freePort, makeCertificate, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { MAIN_PATH } from './fixtures/controller-process.ts';

const TOKEN = 'a-token-of-24-characters';

test('shows metrics and problems over TLS with the token, and only readiness without it', async () => {
  await using directory = temporaryDirectory('controller-admin');
  const { certificate, key } = makeCertificate({ name: 'admin', names: ['127.0.0.1'] });
  writeFileSync(join(directory.path, 'tls.crt'), certificate);
  writeFileSync(join(directory.path, 'tls.key'), key);
  const kubeconfig = join(directory.path, 'kubeconfig');
  writeFileSync(kubeconfig, JSON.stringify(kubeConfigFor(await freePort())));
  const port = await freePort();
  await using _controller = await spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', MAIN_PATH],
    env: {
      ...process.env,
      KUBECONFIG: kubeconfig,
      WEIR_REDIS_URL: `redis://127.0.0.1:${await freePort()}`,
      WEIR_ADMIN: `127.0.0.1:${port}`,
      WEIR_ADMIN_TLS: directory.path,
      WEIR_ADMIN_TOKEN: TOKEN,
    },
    name: 'controller',
  });
  const ask = async (path: string, headers = {}): Promise<readonly [number | undefined, string]> => {
    const request = get({ host: '127.0.0.1', port, path, headers, ca: certificate, agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    return [response.statusCode, await text(response)];
  };
  const bearer = { authorization: `Bearer ${TOKEN}` };
  await eventually(async () => assert.equal((await ask('/healthz'))[0], 200), { timeoutMs: 40_000 });
  const [status, reasons] = await ask('/readyz');
  assert.equal(status, 503);
  assert.doesNotMatch(reasons, /API server/);
  assert.match((await ask('/readyz', bearer))[1], /the first full read of the API server is not complete/);
  for (const path of ['/metrics', '/problems', '/leader']) {
    assert.equal((await ask(path))[0], 401);
    assert.equal((await ask(path, bearer))[0], 200);
  }
});

function kubeConfigFor(port: number): object {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'none', cluster: { server: `http://127.0.0.1:${port}` } }],
    users: [{ name: 'none', user: {} }],
    contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
    'current-context': 'none',
  };
}
