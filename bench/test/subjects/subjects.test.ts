import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { selectAvailable } from '../../src/provide-programs.ts';
import { envoyConfiguration } from '../../src/subjects/envoy.ts';
import { haproxyConfiguration } from '../../src/subjects/haproxy.ts';
import { nginxStreamConfiguration } from '../../src/subjects/nginx-stream.ts';
import { BACKEND_NAMES } from '../../src/subjects/subject.ts';
import { featureSupportFor } from '../../src/subjects/weir-console.ts';
import { benchmarkManifests } from '../../src/subjects/weir-manifests.ts';

const ports = { http: 1001, stream: 1002, echo: 1003, datagrams: 1004 };
const backends = { http: 2001, stream: 2002, echo: 2003, datagrams: 2004 };

describe('configurations', () => {
  test('HAProxy listens on the TCP ports and allows the idle connections', () => {
    const text = haproxyConfiguration({ ports, backends, connections: 9_700 });
    for (const name of ['http', 'stream', 'echo'] as const) {
      assert.ok(text.includes(`bind 127.0.0.1:${ports[name]}\n  server backend 127.0.0.1:${backends[name]}\n`));
    }
    assert.ok(!text.includes(String(ports.datagrams)));
    assert.match(text, /nbthread 1\n {2}maxconn 9800\n/);
  });

  test('nginx listens on all four ports, one of them UDP', () => {
    const text = nginxStreamConfiguration({ directory: '/somewhere', ports, backends });
    assert.match(text, /listen 127\.0\.0\.1:1001 reuseport backlog=4096; proxy_pass 127\.0\.0\.1:2001;/);
    assert.match(text, /listen 127\.0\.0\.1:1004 udp reuseport rcvbuf=4194304; proxy_pass 127\.0\.0\.1:2004;/);
    assert.equal(text.match(/listen/g)?.length, 4);
  });

  test('Envoy listens on all four ports, without admin port and circuit breakers', () => {
    const text = JSON.stringify(envoyConfiguration(ports, backends));
    for (const port of [...Object.values(ports), ...Object.values(backends)]) {
      assert.equal(text.match(new RegExp(`"port_value":${port}\\b`, 'g'))?.length, 1, String(port));
    }
    assert.equal(text.match(/"protocol":"UDP"/g)?.length, 2);
    assert.ok(!text.includes('admin'));
    assert.ok(text.includes('"max_connections":1000000000'));
  });

  test('Weir has four Services, and limits for the loaded tenant only', () => {
    const text = benchmarkManifests(ports, backends);
    assert.equal(text.match(/kind: Service$/gm)?.length, 4);
    assert.match(text, /port: 1004, targetPort: 2004, protocol: UDP/);
    assert.match(text, /name: echo, namespace: calm/);
    assert.ok(!text.includes('TenantPolicy'));
    assert.match(
      benchmarkManifests(ports, backends, 'restrictive'),
      /kind: TenantPolicy.*matchLabels: [^\n]*: bench.*connections: 8/s,
    );
  });
});

describe('featureSupportFor', () => {
  const served = Object.keys(ports).map((name) => ({ name, state: 'Programmed', message: '' }));
  const featuresWith = (...limitNames: string[]) => ({ backends: BACKEND_NAMES, limitNames });
  const notEnforced = (name: string) => ({
    subject: 'TenantPolicy bench',
    message: `spec.limits.${name} is not enforced by this version and has no effect (/tmp/x/services.yaml:65)`,
  });

  test('returns nothing if every Service is accepted', () => {
    assert.deepEqual(featureSupportFor(served, [], featuresWith()), { unsupported: {}, notEnforced: [] });
  });

  test('returns the message of a refused Service without the path of the temporary file', () => {
    const refused = { name: 'datagrams', state: 'Refused', message: 'only TCP is (/tmp/x/services.yaml:3)' };
    const services = [...served.filter(({ name }) => name !== 'datagrams'), refused];
    assert.deepEqual(featureSupportFor(services, [], featuresWith()).unsupported, { datagrams: 'only TCP is' });
  });

  test('returns all Services if no limit is enforced, and none if one limit is enforced', () => {
    const problems = [notEnforced('connections'), notEnforced('inBitsPerSecond')];
    const none = featureSupportFor(served, problems, featuresWith('connections', 'inBitsPerSecond'));
    assert.deepEqual(Object.keys(none.unsupported), Object.keys(ports));
    assert.match(none.unsupported.stream ?? '', /enforces none of the limits \(connections, inBitsPerSecond\)/);
    const one = featureSupportFor(served, problems.slice(1), featuresWith('connections', 'inBitsPerSecond'));
    assert.deepEqual(one, { unsupported: {}, notEnforced: ['inBitsPerSecond'] });
  });
});

describe('selectAvailable', () => {
  const nginx = { kind: 'available', name: 'nginx', path: '/nginx', version: '1.22.1' } as const;
  const envoy = { kind: 'missing', name: 'envoy', reason: 'no Python', remedy: 'install Python' } as const;
  const subjects = ['weir', 'envoy'] as const;

  test('leaves out missing programs of the default subjects', () => {
    assert.deepEqual(selectAvailable([nginx, envoy], { subjects, optional: ['envoy'] }), {
      versions: { nginx: '1.22.1' },
      subjects: ['weir'],
      leftOut: ['envoy: no Python; to get it: install Python'],
    });
  });

  test('throws with the remedy if a program of a selected subject is missing', () => {
    assert.throws(
      () => selectAvailable([nginx, envoy], { subjects, optional: [] }),
      /^Error: envoy is missing \(no Python\); to get it: install Python$/,
    );
  });
});
