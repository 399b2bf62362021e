// Fields of manifests that would be ignored without a message.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseContents } from '../../../src/watch/directory/file-contents.ts';
import { manifestParsersFor } from '../../../src/watch/directory/manifest-kinds.ts';

const read = (object: object, previous?: ReturnType<typeof parseContents>): ReturnType<typeof parseContents> =>
  parseContents(
    { path: 'web.json', text: JSON.stringify(object) },
    { parsers: manifestParsersFor(undefined), previous },
  );
const messagesOf = ({ problems }: ReturnType<typeof read>): string[] =>
  problems.map(({ severity, message }) => `${severity}: ${message}`);

const metadata = { name: 'web', namespace: 'shop' };
const service = (spec: object, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata,
  spec: { type: 'LoadBalancer', ports: [{ port: 80 }], ...spec },
  ...more,
});
const slice = (more: object): object => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-1', namespace: 'shop', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  ...more,
});

describe('unknown fields of a manifest', () => {
  for (const [name, object, message] of [
    [
      'of a spec',
      service({ loadBalancerSourceRange: ['10.0.0.0/8'] }),
      'spec.loadBalancerSourceRange is unknown; did you mean loadBalancerSourceRanges?',
    ],
    [
      'of a port',
      service({ ports: [{ port: 80, appProtocoll: 'http' }] }),
      'spec.ports[0].appProtocoll is unknown; did you mean appProtocol?',
    ],
    [
      'of the metadata',
      service({}, { metadata: { ...metadata, anotations: { 'weir.dev/nodes': '1' } } }),
      'metadata.anotations is unknown; did you mean annotations?',
    ],
    [
      'with no similar name',
      service({ replicas: 3 }),
      'spec.replicas is unknown; Kubernetes has no such field here; remove it',
    ],
    [
      'of an endpoint',
      slice({ endpoints: [{ address: '127.0.0.1', addresses: ['127.0.0.1'] }] }),
      'endpoints[0].address is unknown; did you mean addresses?',
    ],
    [
      'of conditions',
      slice({ endpoints: [{ addresses: ['127.0.0.1'], conditions: { raedy: false } }] }),
      'endpoints[0].conditions.raedy is unknown; did you mean ready?',
    ],
  ] as const) {
    test(`${name} make the object invalid`, () => {
      const contents = read(object);
      assert.deepEqual(messagesOf(contents), [`error: ${message} (web.json:1)`]);
      assert.equal(contents.objects.size, 0);
    });
  }

  test('leave the last valid version of the object in use', () => {
    const before = read(service({ loadBalancerSourceRanges: ['10.0.0.0/8'] }));
    const after = read(service({ loadBalancerSourceRange: ['10.0.0.0/8'] }), before);
    assert.equal(after.objects.get('Service shop/web'), before.objects.get('Service shop/web'));
  });

  test('are reported up to 20 times for one object', () => {
    const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`nonsense${i}`, i]));
    assert.equal(read(service(many)).problems.length, 21);
  });

  test('do not include a field of the object in a dump of a cluster', () => {
    const dumped = service(
      { clusterIPs: ['10.96.0.1'], ipFamilyPolicy: 'SingleStack', internalTrafficPolicy: 'Cluster' },
      { status: { loadBalancer: { ingress: [{ ip: '192.0.2.1', ipMode: 'Proxy' }] }, conditions: [] } },
    );
    assert.deepEqual(messagesOf(read(dumped)), []);
    const hints = { forZones: [{ name: 'a' }], forNodes: [{ name: 'n1' }] };
    const endpoint = { addresses: ['10.0.0.1'], hints, nodeName: 'n1', targetRef: { kind: 'Pod', name: 'web-0' } };
    assert.deepEqual(messagesOf(read(slice({ ports: [{ port: 80 }], endpoints: [endpoint] }))), []);
  });
});

describe('settings of another load balancer', () => {
  const annotations = { 'metallb.universe.tf/loadBalancerIPs': '192.0.2.9', 'example.com/owner': 'me' };

  test('get a warning, and the Service stays valid', () => {
    const contents = read(service({ loadBalancerIP: '192.0.2.9' }, { metadata: { ...metadata, annotations } }));
    assert.deepEqual(messagesOf(contents), [
      'warning: spec.loadBalancerIP has no effect: Weir publishes addresses of its nodes; remove the field, or choose the nodes with annotation weir.dev/pool (web.json:1)',
      'warning: annotation metallb.universe.tf/loadBalancerIPs has no effect: it configures MetalLB, not Weir; remove the annotation (web.json:1)',
    ]);
    assert.equal(contents.objects.size, 1);
  });

  test('get no warning in a Service of that load balancer', () => {
    const spec = { loadBalancerIP: '192.0.2.9', loadBalancerClass: 'metallb.io/metallb' };
    assert.deepEqual(messagesOf(read(service(spec, { metadata: { ...metadata, annotations } }))), []);
  });
});
