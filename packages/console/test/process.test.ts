// Tests the console process with a real Redis.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { requireProgram, startRedis } from '@weir/tools';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

describe('weir-console with Redis', requireProgram('redis'), () => {
  test('warns without a kubeconfig and exits with code 0', async () => {
    await using redis = await startRedis();
    await using console = await spawnConsole({ WEIR_REDIS_URL: redis.url });
    const [warning] = warningsIn(console.output());
    assert.match(warning ?? '', /no kubeconfig: the console writes Suspensions to the store only.*KUBECONFIG/);
    assert.deepEqual(await console.stop(), { code: 0, signal: null });
  });

  test('refuses unsafe and incomplete settings with exit code 2', async () => {
    await using redis = await startRedis();
    await using directory = temporaryDirectory('console');
    const cluster = { server: 'https://127.0.0.1:6443', 'proxy-url': 'ftp://u:secret@proxy' };
    const kubeconfig = {
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
      clusters: [{ name: 'a', cluster }],
      users: [{ name: 'a', user: { token: 'x' } }],
    };
    writeFileSync(join(directory.path, 'kubeconfig'), JSON.stringify(kubeconfig));
    const cases: readonly (readonly [env: Record<string, string>, message: RegExp])[] = [
      [{ WEIR_CONSOLE: '0.0.0.0:0' }, /must not listen on 0\.0\.0\.0.*set WEIR_CONSOLE_AUTH=kubernetes/],
      [
        { WEIR_CONSOLE_AGGREGATED: 'true' },
        /WEIR_CONSOLE_AGGREGATED=true needs WEIR_CONSOLE_AUTH=kubernetes and WEIR_CONSOLE_TLS/,
      ],
      [
        { WEIR_CONSOLE_AUTH: 'kubernetes' },
        /needs an API server that checks tokens; run the console in the cluster, or set KUBECONFIG/,
      ],
      [
        { KUBECONFIG: join(directory.path, 'kubeconfig') },
        /the proxy-url "ftp:\/\/u:\[redacted\]@proxy" of the kubeconfig cannot be used; use http:\/\//,
      ],
    ];
    for (const [env, message] of cases) {
      await using console = await spawnConsole({ WEIR_REDIS_URL: redis.url, ...env }, { mayExit: true });
      assert.deepEqual(await console.exited, { code: 2, signal: null });
      assert.match(console.output(), message);
    }
  });
});

function spawnConsole(
  env: Readonly<Record<string, string>>,
  { mayExit = false }: { readonly mayExit?: boolean } = {},
): Promise<SpawnedProcess> {
  const { KUBECONFIG: _, KUBERNETES_SERVICE_HOST: __, ...inherited } = process.env;
  return spawnProcess({
    name: 'weir-console',
    command: process.execPath,
    args: ['--conditions=source', MAIN],
    ...(mayExit ? { mayExit } : { readyWhen: /console is listening/, readyTimeoutMs: 60_000 }),
    env: { ...inherited, WEIR_CONSOLE: '127.0.0.1:0', ...env },
  });
}

function warningsIn(output: string): string[] {
  const lines = output.split('\n').filter((line) => line !== '');
  return lines
    .map((line) => JSON.parse(line) as { level: string; msg: string })
    .filter(({ level }) => level === 'warn')
    .map(({ msg }) => msg);
}
