import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { requireProgram, startRedisCluster, startRedisSentinel } from '@weir/tools';
import { manifestDirectory, service } from '../fixtures/manifests.ts';
import { startTestStandalone } from '../fixtures/standalone.ts';
import { runWeirProcess } from '../fixtures/weir-process.ts';

const NO_CLUSTER = { KUBECONFIG: undefined, HOME: '/nowhere', KUBERNETES_SERVICE_HOST: undefined };

describe('the command line with Redis Sentinel and Redis Cluster', requireProgram('redis'), () => {
  test('weir doctor checks the primary of a Sentinel group and prints its address', async () => {
    await using group = await startRedisSentinel({ password: 'p1', sentinelPassword: 'p2' });
    const env = { ...NO_CLUSTER, WEIR_REDIS_URL: group.url, WEIR_REDIS_PASSWORD: 'p1' };
    const { port } = await group.primary();
    const { stdout } = await runWeirProcess(['doctor'], { ...env, WEIR_REDIS_SENTINEL_PASSWORD: 'p2' });
    assert.match(stdout, new RegExp(`^ok +RedisReachable .*127\\.0\\.0\\.1:${port}.*Redis answers as a primary`, 'm'));
    const barred = await runWeirProcess(['doctor'], env);
    assert.match(barred.stdout, /^error +RedisReachable .*Sentinel at .* WEIR_REDIS_SENTINEL_PASSWORD$/m);
  });

  test('weir standalone runs with Redis Cluster', async () => {
    await using group = await startRedisCluster();
    await using files = manifestDirectory();
    const wrong = await runWeirProcess([
      'standalone',
      '-f',
      files.path,
      '--console',
      'off',
      '--redis',
      `${group.url}/1`,
    ]);
    assert.equal(wrong.code, 2);
    assert.match(
      wrong.output,
      /^weir: --redis: the Redis URL .* names a database other than 0, the only database of a cluster/,
    );
    files.write('shop.yaml', service('web'));
    await using _fleet = await startTestStandalone(files, ['--redis', group.url]);
    const { code, stdout } = await runWeirProcess(
      ['doctor', '--redis', group.url, '--fleet', 'standalone'],
      NO_CLUSTER,
    );
    assert.match(stdout, /^ok +RedisReachable/m);
    assert.match(stdout, /^ok +ProxyVersions/m);
    assert.equal(code, 0, stdout);
  });
});
