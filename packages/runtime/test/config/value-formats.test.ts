import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatDuration, formatHostPort, parseDuration, parseHostPort, redactUrl } from '../../src/index.ts';

test('parses durations with one or several units from large to small', () => {
  const durations = {
    '0s': 0,
    '500ms': 500,
    '5s': 5000,
    '10m': 600_000,
    '1h30m': 5_400_000,
    '7d': 604_800_000,
    '1m0s1ms': 60_001,
  };
  for (const [text, ms] of Object.entries(durations)) assert.equal(parseDuration(text), ms, text);
});

test('returns undefined for an invalid duration', () => {
  for (const text of ['', '5', '5 s', '-5s', '1.5s', '5S', '5s10m', 's', '5s5s', '99999999999999999d']) {
    assert.equal(parseDuration(text), undefined, text);
  }
});

test('formats a duration so that it parses to the same value', () => {
  for (const ms of [0, 1, 999, 1000, 90_000, 86_400_000, 90_061_001])
    assert.equal(parseDuration(formatDuration(ms)), ms);
  assert.equal(formatDuration(90_000), '1m30s');
});

test('parses and formats HOST:PORT with IPv6 in brackets', () => {
  for (const text of ['127.0.0.1:8687', '[::1]:8687', 'localhost:0', 'redis.weir-system.svc:6379', '0.0.0.0:65535']) {
    const parsed = parseHostPort(text);
    assert.ok(parsed !== undefined, text);
    assert.equal(formatHostPort(parsed), text);
  }
  assert.deepEqual(parseHostPort('[2001:db8::1]:443'), { host: '2001:db8::1', port: 443 });
  // A chart template does not know the address family and always adds brackets.
  assert.deepEqual(parseHostPort('[127.0.0.1]:80'), { host: '127.0.0.1', port: 80 });
});

test('returns undefined for an invalid HOST:PORT', () => {
  const wrong = ['', '8687', ':8687', 'host', 'host:', 'host:65536', 'host:-1', '::1:80', '[::1]', '1.2.3:80'];
  for (const text of [...wrong, '999.1.1.1:80', '-a:80', 'a b:80', 'http://a:80', 'a:80/']) {
    assert.equal(parseHostPort(text), undefined, text);
  }
});

test('redacts passwords and queries of URLs', () => {
  const urls = {
    'redis://redis:6379/0': 'redis://redis:6379/0',
    'redis://weir:hunter2@redis:6379': 'redis://weir:[redacted]@redis:6379',
    'redis://:hunter2@redis': 'redis://:[redacted]@redis',
    'redis://hunter2@redis': 'redis://[redacted]@redis',
    'redis://weir:hun@ter2@redis': 'redis://weir:[redacted]@redis',
    'redis://weir:hun#t/er2@redis': 'redis://weir:[redacted]@redis',
    'redis://redis?password=hunter2': 'redis://redis',
    'redis://:hunter2': 'redis://[redacted]',
    'redis:6379': 'redis:6379',
    'weir:hunter2@redis': 'weir:[redacted]@redis',
    hunter2: '[redacted]',
  };
  for (const [url, redacted] of Object.entries(urls)) assert.equal(redactUrl(url), redacted);
});
