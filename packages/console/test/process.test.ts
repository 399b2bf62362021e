// The console as a process, over a real Redis.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { requireProgram, type SpawnedProcess, spawnProcess, startRedis } from '@weir/testkit';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

describe('weir-console with Redis', requireProgram('redis'), () => {
  test('without an API server it says at its start where Suspensions go, and ends well', async () => {
    await using redis = await startRedis();
    await using console = await spawnConsole({ WEIR_REDIS_URL: redis.url });
    const [warning] = warningsIn(console.output());
    assert.match(warning ?? '', /no kubeconfig: Suspensions go to the store alone.*KUBECONFIG/);
    assert.deepEqual(await console.stop(), { code: 0, signal: null });
  });
});

function spawnConsole(env: Readonly<Record<string, string>>): Promise<SpawnedProcess> {
  const { KUBECONFIG: _, KUBERNETES_SERVICE_HOST: __, ...inherited } = process.env;
  return spawnProcess({
    name: 'weir-console',
    command: process.execPath,
    args: ['--conditions=source', MAIN],
    readyWhen: /the console listens/,
    readyTimeoutMs: 60_000,
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
