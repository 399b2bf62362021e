import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatHostPort, type HostPort } from '@weir/runtime';
import { type CommandSender, findServer } from '../../../src/redis/connection/find-server.ts';
import { parseRedisUrl, type RedisTopology } from '../../../src/redis/connection/redis-url.ts';

const never = new Promise<never>(() => undefined);
const mustNotBeCalled: CommandSender = () => assert.fail('no command expected');

function topologyOf(url: string): RedisTopology {
  const result = parseRedisUrl(url);
  assert.ok(result.kind === 'url', url);
  return result.url.topology;
}

/** Returns a sender that replies with the value for the server's HOST:PORT, or throws that value if it is an Error. */
function replying(replies: Readonly<Record<string, unknown>>): CommandSender {
  return async (server) => {
    const reply = replies[formatHostPort(server)];
    if (reply instanceof Error) throw reply;
    return reply;
  };
}

describe('finding the primary by sentinels', () => {
  const topology = topologyOf('redis-sentinel://a,b,c#weir');
  const find = (a: unknown, b: unknown, c: unknown): Promise<HostPort> =>
    findServer(topology, {
      slotKey: 'k',
      sendToRedis: mustNotBeCalled,
      sendToSentinel: replying({ 'a:26379': a, 'b:26379': b, 'c:26379': c }),
    });
  const [old, next] = [
    ['10.0.0.1', '6379'],
    ['10.0.0.2', '6380'],
  ];
  const gone = new Error('connect ECONNREFUSED');

  test('returns the primary that a majority names, whatever the other sentinels reply', async () => {
    const successor = { host: '10.0.0.2', port: 6380 };
    assert.deepEqual(await find(next, next, never), successor);
    assert.deepEqual(await find(never, next, next), successor);
    assert.deepEqual(await find(old, next, next), successor);
    assert.deepEqual(await find(gone, next, next), successor);
    assert.deepEqual(await find(null, next, next), successor);
  });

  test('rejects with AWAY and all replies if no majority agrees', async () => {
    const cases: readonly (readonly [unknown, unknown, unknown])[] = [
      [old, gone, gone],
      [old, next, gone],
      [old, next, null],
    ];
    for (const answers of cases) {
      await assert.rejects(find(...answers), {
        code: 'AWAY',
        message:
          /^no majority of the sentinels .* names one server as the primary "weir": a:26379 names 10\.0\.0\.1:6379; /,
      });
    }
  });

  test('rejects with REFUSED if all sentinels do not know the primary or refuse the client', async () => {
    await assert.rejects(find(null, null, null), {
      code: 'REFUSED',
      message:
        'the sentinels a:26379,b:26379,c:26379 do not know the primary "weir"; check the name after # in the Redis URL',
    });
    const denied = new Error('NOAUTH Authentication required.');
    await assert.rejects(find(denied, denied, denied), {
      code: 'REFUSED',
      message: 'Sentinel at a:26379 asks for a password; set the password in WEIR_REDIS_SENTINEL_PASSWORD',
    });
    await assert.rejects(find(denied, denied, gone), { code: 'AWAY' });
  });
});

describe('finding the server of a cluster', () => {
  const topology = topologyOf('redis-cluster://a,b:7000');
  const find = (a: unknown, b: unknown): Promise<HostPort> =>
    findServer(topology, {
      slotKey: 'k',
      sendToRedis: replying({ 'a:6379': a, 'b:7000': b }),
      sendToSentinel: mustNotBeCalled,
    });
  const gone = new Error('connect ECONNREFUSED');

  test('returns the server that owns the key, or the server that MOVED names', async () => {
    assert.deepEqual(await find(1, never), { host: 'a', port: 6379 });
    assert.deepEqual(await find(gone, new Error('MOVED 3999 10.0.0.9:7001')), { host: '10.0.0.9', port: 7001 });
    assert.deepEqual(await find(gone, new Error('MOVED 3999 fd00::9:7001')), { host: 'fd00::9', port: 7001 });
    assert.deepEqual(await find(gone, new Error('MOVED 3999 :7001')), { host: 'b', port: 7001 });
  });

  test('rejects with AWAY if the cluster is down, and with REFUSED if all servers refuse the client', async () => {
    await assert.rejects(find(gone, new Error('CLUSTERDOWN The cluster is down')), { code: 'AWAY' });
    const denied = new Error('WRONGPASS invalid username-password pair or user is disabled.');
    await assert.rejects(find(denied, denied), { code: 'REFUSED', message: /refuses the user name/ });
    await assert.rejects(find(denied, gone), { code: 'AWAY' });
  });
});
