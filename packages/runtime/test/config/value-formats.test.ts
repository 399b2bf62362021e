import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatHostPort, parseHostPort, redactUrl } from '../../src/index.ts';

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
