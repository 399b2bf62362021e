import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseRedisUrl } from '../../../src/redis/connection/redis-url.ts';

function parse(text: string) {
  const result = parseRedisUrl(text);
  assert.ok(result.kind === 'url', `${text} ${result.kind === 'invalid' ? result.reason : ''}`);
  return result.url;
}

test('parses a URL of a single server', () => {
  const url = {
    topology: { kind: 'single', at: { host: 'h', port: 6379 } },
    username: undefined,
    password: undefined,
    db: 0,
    tls: false,
  };
  assert.deepEqual(parse('redis://h'), url);
  assert.deepEqual(parse('redis://h/'), url);
  assert.deepEqual(parse('rediss://weir:p%40%2Fss@[::1]:7/3'), {
    topology: { kind: 'single', at: { host: '::1', port: 7 } },
    username: 'weir',
    password: 'p@/ss',
    db: 3,
    tls: true,
  });
  assert.deepEqual(parse('redis://:pw:x@my_redis').topology, {
    kind: 'single',
    at: { host: 'my_redis', port: 6379 },
  });
  assert.equal(parse('redis://:pw:x@my_redis').password, 'pw:x');
});

test('parses URLs of sentinels with a primary and of a cluster', () => {
  assert.deepEqual(parse('rediss-sentinel://:pw@a,b:7,[fd00::1]/2#my.weir-1'), {
    topology: {
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
  const { topology, tls } = parse('redis-cluster://a,b:7');
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

test('refuses ambiguous and malformed URLs', () => {
  for (const [text, reason] of [
    ['redis://a,b', /several hosts/],
    ['redis://a#weir', /fragment .* only redis-sentinel:/],
    ['redis://a?family=6', /query or a fragment/],
    ['redis://:a@b@c', /not percent-encoded/],
    ['redis://:a/b@c', /not percent-encoded/],
    ['redis://10.0.0', /invalid host/],
    ['redis://a:0', /invalid host/],
    ['redis://a:99999', /invalid host/],
    ['redis-sentinel://a,b', /name the primary/],
    ['redis-sentinel://a,,b#weir', /invalid host/],
    ['redis-sentinel://a,a:26379#weir', /names a:26379 twice/],
    ['redis-sentinel://a?master=weir', /query or a fragment/],
    ['redis-sentinel://#weir', /no host/],
    ['redis-cluster://a/1', /other than 0/],
    ['redis-cluster://a#weir', /fragment/],
    ['redis-ring://a', /does not begin with redis:/],
    ['a:6379', /./],
  ] as const) {
    const result = parseRedisUrl(text);
    assert.equal(result.kind, 'invalid', text);
    assert.match(result.kind === 'invalid' ? result.reason : '', reason);
  }
});
