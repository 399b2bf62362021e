import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatHostPort, type HostPort } from '@weir/runtime';
import { type CommandSender, findServer } from '../../../src/redis/connection/find-server.ts';
import { parseRedisUrl, type RedisTopology } from '../../../src/redis/connection/redis-url.ts';

const never = new Promise<never>(() => undefined);
const mustNotBeAsked: CommandSender = () => assert.fail('nobody is to be asked');

function topologyOf(url: string): RedisTopology {
  const reading = parseRedisUrl(url);
  assert.ok(reading.kind === 'url', url);
  return reading.url.topology;
}

/** What each server answers; an error is thrown. */
function replying(answers: Readonly<Record<string, unknown>>): CommandSender {
  return async (at) => {
    const answer = answers[formatHostPort(at)];
    if (answer instanceof Error) throw answer;
    return answer;
  };
}

describe('the primary of sentinels', () => {
  const place = topologyOf('redis-sentinel://a,b,c#weir');
  const ask = (a: unknown, b: unknown, c: unknown): Promise<HostPort> =>
    findServer(place, {
      key: 'k',
      sendToRedis: mustNotBeAsked,
      sendToSentinel: replying({ 'a:26379': a, 'b:26379': b, 'c:26379': c }),
    });
  const [old, next] = [
    ['10.0.0.1', '6379'],
    ['10.0.0.2', '6380'],
  ];
  const gone = new Error('connect ECONNREFUSED');

  test('is what more than half of them say, whoever of the others is silent, gone or behind', async () => {
    const successor = { host: '10.0.0.2', port: 6380 };
    assert.deepEqual(await ask(next, next, never), successor);
    assert.deepEqual(await ask(never, next, next), successor);
    assert.deepEqual(await ask(old, next, next), successor);
    assert.deepEqual(await ask(gone, next, next), successor);
    assert.deepEqual(await ask(null, next, next), successor);
  });

  test('is nobody as long as they do not agree, which is told with what each said', async () => {
    const cases: readonly (readonly [unknown, unknown, unknown])[] = [
      [old, gone, gone],
      [old, next, gone],
      [old, next, null],
    ];
    for (const answers of cases) {
      await assert.rejects(ask(...answers), {
        code: 'AWAY',
        message: /"weir" by more than half .*: a:26379 says 10\.0\.0\.1:6379; /,
      });
    }
  });

  test('is a mistake when none knows the name, or none lets us ask', async () => {
    await assert.rejects(ask(null, null, null), {
      code: 'REFUSED',
      message: 'the sentinels a:26379,b:26379,c:26379 know no primary "weir"; check the name behind # in the Redis URL',
    });
    const barred = new Error('NOAUTH Authentication required.');
    await assert.rejects(ask(barred, barred, barred), {
      code: 'REFUSED',
      message: 'Sentinel at a:26379 asks for a password; put it into its settings (WEIR_REDIS_SENTINEL_PASSWORD)',
    });
    await assert.rejects(ask(barred, barred, gone), { code: 'AWAY' });
  });
});

describe('the server of a cluster that has our keys', () => {
  const place = topologyOf('redis-cluster://a,b:7000');
  const ask = (a: unknown, b: unknown): Promise<HostPort> =>
    findServer(place, {
      key: 'k',
      sendToRedis: replying({ 'a:6379': a, 'b:7000': b }),
      sendToSentinel: mustNotBeAsked,
    });
  const gone = new Error('connect ECONNREFUSED');

  test('is who answers for a key of ours, or who is named instead', async () => {
    assert.deepEqual(await ask(1, never), { host: 'a', port: 6379 });
    assert.deepEqual(await ask(gone, new Error('MOVED 3999 10.0.0.9:7001')), { host: '10.0.0.9', port: 7001 });
    assert.deepEqual(await ask(gone, new Error('MOVED 3999 fd00::9:7001')), { host: 'fd00::9', port: 7001 });
    assert.deepEqual(await ask(gone, new Error('MOVED 3999 :7001')), { host: 'b', port: 7001 });
  });

  test('is nobody while the cluster is down or no server answers, and a mistake when none lets us in', async () => {
    await assert.rejects(ask(gone, new Error('CLUSTERDOWN The cluster is down')), { code: 'AWAY' });
    const barred = new Error('WRONGPASS invalid username-password pair or user is disabled.');
    await assert.rejects(ask(barred, barred), { code: 'REFUSED', message: /refuses the user name/ });
    await assert.rejects(ask(barred, gone), { code: 'AWAY' });
  });
});
