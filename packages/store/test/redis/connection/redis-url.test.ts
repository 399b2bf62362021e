import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRedisUrl } from '../../../src/redis/connection/redis-url.ts';

function topologyOf(text: string) {
  const reading = parseRedisUrl(text);
  assert.ok(reading.kind === 'url', `${text} ${reading.kind === 'wrong' ? reading.why : ''}`);
  return reading.url;
}

test('one server, as everywhere', () => {
  const url = {
    place: { kind: 'single', at: { host: 'h', port: 6379 } },
    username: undefined,
    password: undefined,
    db: 0,
    tls: false,
  };
  assert.deepEqual(topologyOf('redis://h'), url);
  assert.deepEqual(topologyOf('redis://h/'), url);
  assert.deepEqual(topologyOf('rediss://weir:p%40%2Fss@[::1]:7/3'), {
    place: { kind: 'single', at: { host: '::1', port: 7 } },
    username: 'weir',
    password: 'p@/ss',
    db: 3,
    tls: true,
  });
  assert.deepEqual(topologyOf('redis://:pw:x@my_redis').topology, {
    kind: 'single',
    at: { host: 'my_redis', port: 6379 },
  });
  assert.equal(topologyOf('redis://:pw:x@my_redis').password, 'pw:x');
});

test('sentinels with the name of their primary, and the servers of a cluster', () => {
  assert.deepEqual(topologyOf('rediss-sentinel://:pw@a,b:7,[fd00::1]/2#my.weir-1'), {
    place: {
      kind: 'sentinel',
      sentinels: [
        { host: 'a', port: 26379 },
        { host: 'b', port: 7 },
        { host: 'fd00::1', port: 26379 },
      ],
      primary: 'my.weir-1',
    },
    username: undefined,
    password: 'pw',
    db: 2,
    tls: true,
  });
  const { topology, tls } = topologyOf('redis-cluster://a,b:7');
  assert.deepEqual(
    [topology, tls],
    [
      {
        kind: 'cluster',
        seeds: [
          { host: 'a', port: 6379 },
          { host: 'b', port: 7 },
        ],
      },
      false,
    ],
  );
});

test('what could be meant otherwise is refused', () => {
  for (const [text, why] of [
    ['redis://a,b', /several hosts/],
    ['redis://a#weir', /query or a fragment/],
    ['redis://a?family=6', /query or a fragment/],
    ['redis://:a@b@c', /not percent-encoded/],
    ['redis://:a/b@c', /not percent-encoded/],
    ['redis://10.0.0', /as a host that is none/],
    ['redis://a:0', /as a host/],
    ['redis://a:99999', /as a host/],
    ['redis-sentinel://a,b', /which primary/],
    ['redis-sentinel://a,,b#weir', /as a host that is none/],
    ['redis-sentinel://a,a:26379#weir', /names a:26379 twice/],
    ['redis-sentinel://a?master=weir', /query or a fragment/],
    ['redis-sentinel://#weir', /no host/],
    ['redis-cluster://a/1', /only the first/],
    ['redis-cluster://a#weir', /fragment/],
    ['redis-ring://a', /does not begin with redis:/],
    ['a:6379', /./],
  ] as const) {
    const reading = parseRedisUrl(text);
    assert.equal(reading.kind, 'wrong', text);
    assert.match(reading.kind === 'wrong' ? reading.why : '', why);
  }
});
