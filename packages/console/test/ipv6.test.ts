// Tests the chart's listen address [::], which must work in IPv6-only, IPv4-only and dual-stack clusters.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { insideNamespace, programPath, requireProgram, startRedis } from '@weir/tools';

const POD = 'fd00:10:244::5';
const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

const inside = insideNamespace({ addresses: [POD] });

describe('a console at [::]', { ...inside, ...requireProgram('redis') }, () => {
  const folder = temporaryDirectory('kubeconfig');
  after(() => folder.close());
  const kubeconfig = join(folder.path, 'config');
  before(() => {
    const cluster = { name: 'c', cluster: { server: 'https://[fd00:10:96::1]:443' } };
    const context = { name: 'c', context: { cluster: 'c', user: 'u' } };
    const user = { name: 'u', user: { token: 't' } };
    const config = { clusters: [cluster], contexts: [context], users: [user], 'current-context': 'c' };
    writeFileSync(kubeconfig, JSON.stringify(config));
  });
  const statusAt = async (host: string, port: number): Promise<number | undefined> => {
    const request = get({ host, port, path: '/healthz' });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };
  const startAt = (redis: string): Promise<SpawnedProcess> =>
    spawnProcess({
      name: 'weir-console',
      command: process.execPath,
      args: ['--conditions=source', MAIN],
      readyWhen: /console is listening/,
      readyTimeoutMs: 60_000,
      env: {
        ...process.env,
        KUBECONFIG: kubeconfig,
        WEIR_REDIS_URL: redis,
        WEIR_CONSOLE: '[::]:0',
        WEIR_CONSOLE_AUTH: 'kubernetes',
      },
    });
  const portOf = (console: SpawnedProcess): number => Number(/http:\/\/\[::\]:(\d+)\//.exec(console.output())?.[1]);

  test('accepts IPv4 connections', async () => {
    await using redis = await startRedis();
    await using console = await startAt(redis.url);
    assert.equal(await statusAt('127.0.0.1', portOf(console)), 200);
    assert.equal(await statusAt(POD, portOf(console)), 200);
  });

  test('starts and answers without IPv4', async () => {
    execFileSync(programPath('ip'), ['address', 'delete', '127.0.0.1/8', 'dev', 'lo']);
    const families = Object.values(networkInterfaces()).flatMap((each = []) => each.map(({ family }) => family));
    assert.deepEqual([...new Set(families)], ['IPv6']);
    await using redis = await startRedis({ host: '::1' });
    await using console = await startAt(`redis://[::1]:${redis.port}`);
    assert.equal(await statusAt(POD, portOf(console)), 200);
    assert.equal(await statusAt('::1', portOf(console)), 200);
  });
});
