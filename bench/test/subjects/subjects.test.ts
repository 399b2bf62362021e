import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { selectAvailable } from '../../src/provide-programs.ts';
import { envoyConfiguration } from '../../src/subjects/envoy.ts';
import { haproxyConfiguration } from '../../src/subjects/haproxy.ts';
import { nginxStreamConfiguration } from '../../src/subjects/nginx-stream.ts';
import { featureSupportFor } from '../../src/subjects/weir-console.ts';
import { benchmarkManifests } from '../../src/subjects/weir-manifests.ts';

const ports = { answers: 1001, bulk: 1002, echo: 1003, datagrams: 1004 };
const backends = { answers: 2001, bulk: 2002, echo: 2003, datagrams: 2004 };

describe('the same ports in front of the same backends', () => {
  test('HAProxy has those of TCP, and room for the idle crowd', () => {
    const text = haproxyConfiguration({ ports, backends, connections: 9_700 });
    for (const name of ['answers', 'bulk', 'echo'] as const) {
      assert.ok(text.includes(`bind 127.0.0.1:${ports[name]}\n  server backend 127.0.0.1:${backends[name]}\n`));
    }
    assert.ok(!text.includes(String(ports.datagrams)));
    assert.match(text, /nbthread 1\n {2}maxconn 9800\n/);
  });

  test('nginx has all four, that of UDP as such', () => {
    const text = nginxStreamConfiguration({ directory: '/somewhere', ports, backends });
    assert.match(text, /listen 127\.0\.0\.1:1001 reuseport backlog=4096; proxy_pass 127\.0\.0\.1:2001;/);
    assert.match(text, /listen 127\.0\.0\.1:1004 udp reuseport; proxy_pass 127\.0\.0\.1:2004;/);
    assert.equal(text.match(/listen/g)?.length, 4);
  });

  test('Envoy has all four, without admin, and no circuit breaker that would refuse the crowd', () => {
    const text = JSON.stringify(envoyConfiguration(ports, backends));
    for (const port of [...Object.values(ports), ...Object.values(backends)]) {
      assert.equal(text.match(new RegExp(`"port_value":${port}\\b`, 'g'))?.length, 1, String(port));
    }
    assert.equal(text.match(/"protocol":"UDP"/g)?.length, 2);
    assert.ok(!text.includes('admin'));
    assert.ok(text.includes('"max_connections":1000000000'));
  });

  test('Weir has all four as Services; the limits are those of the tenant with the load', () => {
    const text = benchmarkManifests(ports, backends);
    assert.equal(text.match(/kind: Service$/gm)?.length, 4);
    assert.match(text, /port: 1004, targetPort: 2004, protocol: UDP/);
    assert.match(text, /name: echo, namespace: calm/);
    assert.ok(!text.includes('TenantPolicy'));
    assert.match(
      benchmarkManifests(ports, backends, 'tight'),
      /kind: TenantPolicy.*matchLabels: [^\n]*: bench.*connections: 8/s,
    );
  });
});

describe('what Weir lacks', () => {
  const served = Object.keys(ports).map((name) => ({ name, state: 'Programmed', message: '' }));
  const notEnforced = (name: string) => ({
    subject: 'TenantPolicy bench',
    message: `spec.limits.${name} is not enforced by this version and has no effect (/tmp/x/services.yaml:65)`,
  });

  test('is nothing when every Service is taken', () => {
    assert.deepEqual(featureSupportFor(served, [], []), { unsupported: {}, notEnforced: [] });
  });

  test('is what it refuses, in its words, without the place of our temporary file', () => {
    const refused = { name: 'datagrams', state: 'Refused', message: 'only TCP is (/tmp/x/services.yaml:3)' };
    const services = [...served.filter(({ name }) => name !== 'datagrams'), refused];
    assert.deepEqual(featureSupportFor(services, [], []).unsupported, { datagrams: 'only TCP is' });
  });

  test('is everything when none of the limits is kept, and nothing when one is', () => {
    const problems = [notEnforced('connections'), notEnforced('inBitsPerSecond')];
    const none = featureSupportFor(served, problems, ['connections', 'inBitsPerSecond']);
    assert.deepEqual(Object.keys(none.unsupported), Object.keys(ports));
    assert.match(none.unsupported.bulk ?? '', /enforces none \(connections, inBitsPerSecond\)/);
    const one = featureSupportFor(served, problems.slice(1), ['connections', 'inBitsPerSecond']);
    assert.deepEqual(one, { unsupported: {}, notEnforced: ['inBitsPerSecond'] });
  });
});

describe('programs that cannot be had', () => {
  const nginx = { kind: 'available', name: 'nginx', path: '/nginx', version: '1.22.1' } as const;
  const envoy = { kind: 'missing', name: 'envoy', reason: 'no Python', remedy: 'install Python' } as const;
  const subjects = ['weir', 'envoy'] as const;

  test('are left out when nobody asked for them by name', () => {
    assert.deepEqual(selectAvailable([nginx, envoy], { subjects, mayMiss: ['envoy'] }), {
      versions: { nginx: '1.22.1' },
      subjects: ['weir'],
      leftOut: ['envoy, since no Python; to get it: install Python'],
    });
  });

  test('end the run when they were named, with the line that gets them', () => {
    assert.throws(
      () => selectAvailable([nginx, envoy], { subjects, mayMiss: [] }),
      /^Error: envoy is missing \(no Python\); to get it: install Python$/,
    );
  });
});
