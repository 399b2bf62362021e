import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { projectNode } from '../../src/snapshot/node.ts';
import { projectPod } from '../../src/snapshot/pod.ts';
import { projectService } from '../../src/snapshot/service.ts';
import { projectServiceCidr } from '../../src/snapshot/service-cidr.ts';
import { projectSuspension } from '../../src/snapshot/suspension.ts';
import { projectTenantPolicy } from '../../src/snapshot/tenant-policy.ts';
import { RULE_CASES } from '../fixtures/policy-rules.ts';

const metadata = { uid: 'u1', namespace: 'shop', name: 'web' };
const service = (spec: object, more: object = {}): object => ({ metadata: { ...metadata, ...more }, spec });
const messages = (projection: { problems: readonly { message: string }[] }): string[] =>
  projection.problems.map((each) => each.message);

describe('a Service', () => {
  test('has the defaults that the API server would give it', () => {
    const { object, problems } = projectService(service({ ports: [{ port: 80 }], selector: { app: 'web' } }));
    assert.deepEqual(problems, []);
    assert.deepEqual(object, {
      ...metadata,
      labels: {},
      annotations: {},
      createdAt: null,
      type: 'ClusterIP',
      loadBalancerClass: null,
      ports: [{ name: null, port: 80, protocol: 'TCP', appProtocol: null, nodePort: null }],
      hasSelector: true,
      clientIpAffinitySeconds: null,
      sourceRanges: [],
      externalTrafficPolicy: 'Cluster',
      trafficDistribution: null,
      publishNotReadyAddresses: false,
      ipFamilies: [],
      publishedIPs: [],
      deleting: false,
    });
  });

  test('keeps what it wishes for the distribution of its traffic, also what this version does not know', () => {
    const spec = { ports: [{ port: 80 }], trafficDistribution: 'PreferSomethingNew' };
    const { object, problems } = projectService(service(spec));
    assert.deepEqual([object?.trafficDistribution, problems], ['PreferSomethingNew', []]);
  });

  test('keeps of its annotations only those that Weir reads', () => {
    const read = { 'weir.dev/nodes': '3', 'service.kubernetes.io/topology-mode': 'Auto' };
    const annotations = { ...read, 'kubectl.kubernetes.io/last-applied-configuration': '{…}' };
    const { object } = projectService(service({ ports: [{ port: 80 }] }, { annotations }));
    assert.deepEqual(object?.annotations, read);
  });

  test('keeps the legacy source ranges apart from the field, so that a mistake is told of where it is', () => {
    const annotations = { 'service.beta.kubernetes.io/load-balancer-source-ranges': '10.0.0.0/8, nonsense' };
    const legacy = projectService(service({ ports: [{ port: 80 }] }, { annotations })).object;
    assert.deepEqual([legacy?.sourceRanges, legacy?.annotations], [[], annotations]);
    const spec = { ports: [{ port: 80 }], loadBalancerSourceRanges: ['1.2.3.0/24'] };
    const both = projectService(service(spec, { annotations })).object;
    assert.deepEqual([both?.sourceRanges, both?.annotations], [['1.2.3.0/24'], annotations]);
  });

  test('without affinity is not one with the timeout that the API server writes beside it', () => {
    const config = { sessionAffinityConfig: { clientIP: { timeoutSeconds: 60 } } };
    const spec = { ports: [{ port: 80 }], ...config };
    assert.equal(projectService(service({ ...spec, sessionAffinity: 'None' })).object?.clientIpAffinitySeconds, null);
    assert.equal(projectService(service({ ...spec, sessionAffinity: 'ClientIP' })).object?.clientIpAffinitySeconds, 60);
    const plain = service({ ports: [{ port: 80 }], sessionAffinity: 'ClientIP' });
    assert.equal(projectService(plain).object?.clientIpAffinitySeconds, 10_800);
    const lasting = (timeoutSeconds: number): readonly string[] =>
      messages(projectService(service({ ...spec, sessionAffinityConfig: { clientIP: { timeoutSeconds } } })));
    assert.deepEqual(lasting(86_400), []);
    assert.match(lasting(86_401).join(), /^spec\.sessionAffinityConfig\.clientIP\.timeoutSeconds is 86401; .*86400/);
  });

  test('names every mistake at once, each with its place and what is allowed', () => {
    const projection = projectService({
      metadata: { uid: 'u1', namespace: 'shop', name: 'Web', annotations: { 'weir.dev/nodes': 2 } },
      spec: {
        type: 'LoadBalancer',
        ports: [
          { name: 'a', port: 99_999, protocol: 'tcp' },
          { name: 'a', port: '80', targetPort: 'Not A Port' },
        ],
        sessionAffinity: 'Sticky',
        externalTrafficPolicy: true,
      },
    });
    assert.equal(projection.object, undefined);
    assert.deepEqual(messages(projection).sort(), [
      'metadata.annotations["weir.dev/nodes"] is 2; use text (in quotes, if it looks like a number)',
      'metadata.name is "Web"; use lower-case letters, digits and "-", at most 63, beginning and ending with a letter or digit',
      'spec.externalTrafficPolicy is true; use Cluster, Local',
      'spec.ports[0].port is 99999; use a whole number from 1 to 65535',
      'spec.ports[0].protocol is "tcp"; use TCP, UDP, SCTP',
      'spec.ports[1].name is "a"; use another name: two ports have this one',
      'spec.ports[1].port is "80"; use a whole number from 1 to 65535',
      'spec.ports[1].targetPort is "Not A Port"; use a port number, or the name of a port (at most 15 characters)',
      'spec.sessionAffinity is "Sticky"; use None, ClientIP',
    ]);
    assert.ok(
      projection.problems.every((each) => each.subject === 'Service shop/Web' && each.code === 'InvalidObject'),
    );
  });

  test('may use one number for TCP and UDP, but not twice for one of them', () => {
    const dns = [
      { name: 'tcp', port: 53 },
      { name: 'udp', port: 53, protocol: 'UDP' },
    ];
    assert.deepEqual(projectService(service({ ports: dns })).problems, []);
    const twice = projectService(service({ ports: [...dns, { name: 'more', port: 53 }] }));
    assert.deepEqual(messages(twice), ['spec.ports[2].port is 53; use another number: two ports are 53/TCP']);
  });

  test('without a name is told that, not that an API server gave it no UID', () => {
    const nameless = projectService({ metadata: { namespace: 'shop' }, spec: { ports: [{ port: 80 }] } });
    assert.deepEqual(
      messages(nameless).map((message) => message.split(';')[0]),
      ['metadata.name is missing'],
    );
  });

  test('with a number that JSON cannot write is told which', () => {
    for (const port of [Number.NaN, Number.POSITIVE_INFINITY]) {
      assert.deepEqual(messages(projectService(service({ ports: [{ port }] }))), [
        `spec.ports[0].port is ${port}; use a whole number from 1 to 65535`,
      ]);
    }
  });

  test('that is no object at all is a problem, never an exception', () => {
    for (const raw of [
      null,
      7,
      'x',
      [],
      { metadata: [] },
      { metadata: null, spec: 3 },
      { spec: { ports: [null, 4] } },
    ]) {
      const projection = projectService(raw);
      assert.equal(projection.object, undefined);
      assert.ok(projection.problems.length > 0);
    }
  });
});

test('a pod that has ended gives no addresses: they may be another one’s by now', () => {
  const pod = (phase: string): object => ({
    metadata,
    status: { phase, podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] },
  });
  assert.deepEqual(projectPod(pod('Running')).object?.ips, ['10.0.0.1', 'fd00::1']);
  assert.deepEqual(projectPod(pod('Succeeded')).object?.ips, []);
  assert.deepEqual(projectPod(pod('Failed')).object?.ips, []);
});

test('a Service has its cluster IPs, and a headless one none', () => {
  const ips = (spec: object): readonly string[] | undefined => projectService(service(spec)).object?.clusterIPs;
  assert.deepEqual(ips({ clusterIPs: ['10.96.0.7', 'fd00::7'] }), ['10.96.0.7', 'fd00::7']);
  assert.equal(ips({ clusterIPs: ['None'] }), undefined);
  assert.equal(ips({}), undefined);
});

test('a ServiceCIDR has its ranges', () => {
  const read = (spec: object) => projectServiceCidr({ metadata: { name: 'kubernetes' }, spec });
  assert.deepEqual(read({ cidrs: ['10.96.0.0/16', 'fd00:96::/112'] }).object?.cidrs, ['10.96.0.0/16', 'fd00:96::/112']);
  assert.deepEqual(messages(read({ cidrs: ['10.96.0.0/33'] })).length, 1);
});

test('a node has its addresses by type, in their order', () => {
  const { object } = projectNode({
    metadata: { uid: 'n', name: 'a', labels: { role: 'loadbalancer' } },
    status: {
      addresses: [
        { type: 'Hostname', address: 'a' },
        { type: 'InternalIP', address: '10.0.0.2' },
        { type: 'InternalIP', address: 'fd00::2' },
        { type: 'ExternalIP', address: '1.2.3.4' },
      ],
    },
  });
  assert.deepEqual([object?.internalIPs, object?.externalIPs], [['10.0.0.2', 'fd00::2'], ['1.2.3.4']]);
  assert.deepEqual(object?.labels, { role: 'loadbalancer' });
});

describe('a TenantPolicy', () => {
  const policy = (spec: object): object => ({ metadata: { uid: 'p', name: 'shops' }, spec });

  test('without anything selects every namespace and limits nothing', () => {
    const { object, problems } = projectTenantPolicy(policy({}));
    assert.deepEqual(problems, []);
    assert.deepEqual(object?.spec, {
      priority: 0,
      namespaceSelector: { matchLabels: {}, matchExpressions: [] },
      tenantFrom: { kind: 'namespace' },
      grants: {
        pools: ['default'],
        nodesPerService: null,
        allowedPorts: null,
        allowedHosts: [],
        allowedEndpointCIDRs: [],
      },
      limits: {},
    });
  });

  test('says where its tenants may be served, and what they may reach', () => {
    const { object, problems } = projectTenantPolicy(
      policy({
        pools: ['edge', 'default', 'edge'],
        nodesPerService: 3,
        allowedPorts: [80, '443', '8000-8999'],
        allowedHosts: ['Shop.Example.com', '*.shop.example.com', 'shop.example.com'],
        allowedEndpointCIDRs: ['10.80.3.4/16', 'fd00::/8'],
      }),
    );
    assert.deepEqual(problems, []);
    assert.deepEqual(object?.spec.grants, {
      pools: ['edge', 'default'],
      nodesPerService: 3,
      allowedPorts: [
        { from: 80, to: 80 },
        { from: 443, to: 443 },
        { from: 8_000, to: 8_999 },
      ],
      allowedHosts: ['shop.example.com', '*.shop.example.com'],
      allowedEndpointCIDRs: ['10.80.0.0/16', 'fd00::/8'],
    });
    assert.deepEqual(projectTenantPolicy(policy({ allowedPorts: [] })).object?.spec.grants.allowedPorts, []);
  });

  test('that grants what cannot be is refused, item by item', () => {
    const wrong = projectTenantPolicy(
      policy({
        pools: ['-'],
        nodesPerService: 0,
        allowedPorts: [0, '9-8', '70000', 'http', {}, 1.5],
        allowedHosts: ['*', 'a.*.example', '10.0.0.1', 5],
        allowedEndpointCIDRs: ['10.0.0.1'],
      }),
    );
    assert.equal(wrong.object, undefined);
    const allowed = 'use a port from 1 to 65535, or a range such as 8000-8999';
    const host = 'use a host such as shop.example.com, or *.shop.example.com for all below; other scripts as xn--…';
    assert.deepEqual(messages(wrong), [
      'spec.pools[0] is "-"; use letters, digits, "-", "_" and ".", at most 63, beginning and ending with a letter or digit',
      `spec.allowedHosts[0] is "*"; ${host}`,
      `spec.allowedHosts[1] is "a.*.example"; ${host}`,
      `spec.allowedHosts[2] is "10.0.0.1"; ${host}`,
      `spec.allowedHosts[3] is 5; ${host}`,
      'spec.allowedEndpointCIDRs[0] is "10.0.0.1"; use a CIDR such as 10.0.0.0/8 or fd00::/8',
      'spec.nodesPerService is 0; use a whole number from 1 to 16',
      `spec.allowedPorts[0] is 0; ${allowed}`,
      `spec.allowedPorts[1] is "9-8"; ${allowed}`,
      `spec.allowedPorts[2] is "70000"; ${allowed}`,
      `spec.allowedPorts[3] is "http"; ${allowed}`,
      `spec.allowedPorts[4] is a mapping; ${allowed}`,
      `spec.allowedPorts[5] is 1.5; ${allowed}`,
    ]);
  });

  test('has exact limits, and 0 is one', () => {
    const { object } = projectTenantPolicy(policy({ limits: { services: 2, ports: 0, trafficPerMonth: '10Ti' } }));
    assert.deepEqual(object?.spec.limits, { services: 2, ports: 0, trafficPerMonth: 10 * 2 ** 40 });
  });

  test('limits what is open, what is new, and bits per second', () => {
    const limits = { connections: 0, newConnectionsPerSecond: 100, inBitsPerSecond: '1.5G', outBitsPerSecond: 8_000 };
    const { object, problems } = projectTenantPolicy(policy({ limits }));
    assert.deepEqual(problems, []);
    assert.deepEqual(object?.spec.limits, { ...limits, inBitsPerSecond: 1_500_000_000 });
    const wrong = projectTenantPolicy(
      policy({ limits: { connections: '5', inBitsPerSecond: '1 Gbit', outBitsPerSecond: 0.5 } }),
    );
    assert.deepEqual(messages(wrong), [
      'spec.limits.connections is "5"; use a whole number, 0 or more',
      'spec.limits.inBitsPerSecond is "1 Gbit"; use bits such as 100M, 1.5G or 1Gi',
      'spec.limits.outBitsPerSecond is 0.5; use a whole number of bits',
    ]);
  });

  for (const { what, limits, rules, mistake } of RULE_CASES) {
    test(`whose rule is ${what} is ${mistake === undefined ? 'taken, and told that rules are not enforced' : 'refused'}`, () => {
      const projection = projectTenantPolicy(policy({ limits, rules }));
      assert.deepEqual(messages(projection), [
        mistake ?? 'spec.rules is not enforced yet by this version; what it asks for does not happen',
      ]);
      assert.equal(projection.object === undefined, mistake !== undefined);
    });
  }

  test('whose rules have no names is told so of each, and nothing else', () => {
    const rule = { metric: 'inBitsPerSecond', above: '1G', action: 'Notify' };
    const told = messages(projectTenantPolicy(policy({ rules: [rule, rule] })));
    assert.deepEqual(
      told.map((message) => message.split(';')[0]),
      ['spec.rules[0].name is missing', 'spec.rules[1].name is missing'],
    );
  });

  test('says of every field that is not enforced that it is not', () => {
    const projection = projectTenantPolicy(policy({ rules: [], limits: { requestsPerSecond: 5, services: 1 } }));
    assert.deepEqual(projection.object?.spec.limits, { services: 1 });
    assert.deepEqual(
      projection.problems.map((each) => `${each.severity}: ${each.message}`),
      [
        'warning: spec.rules is not enforced yet by this version; what it asks for does not happen',
        'warning: spec.limits.requestsPerSecond is not enforced yet by this version; what it asks for does not happen',
      ],
    );
  });

  test('whose selector has a field that does not exist does not select every namespace: it is refused', () => {
    const namespaceSelector = {
      matchLabel: { team: 'a' },
      matchExpressions: [{ key: 'a', operator: 'Exists', value: 'b' }],
    };
    const projection = projectTenantPolicy(policy({ namespaceSelector, tenantFrom: { names: 'gold' } }));
    assert.equal(projection.object, undefined);
    assert.deepEqual(messages(projection), [
      'spec.namespaceSelector.matchLabel is unknown; use matchLabels, matchExpressions',
      'spec.namespaceSelector.matchExpressions[0].value is unknown; use key, operator, values',
      'spec.tenantFrom.names is unknown; use type, label, name',
    ]);
  });

  test('that names a tenant without type Name says that the name is not used', () => {
    const { object, problems } = projectTenantPolicy(policy({ tenantFrom: { name: 'gold' } }));
    assert.deepEqual(object?.spec.tenantFrom, { kind: 'namespace' });
    assert.deepEqual(
      problems.map((each) => `${each.severity}: ${each.message}`),
      ['warning: spec.tenantFrom.name is not used with type Namespace; use type Name, or remove it'],
    );
  });

  test('with a field that does not exist, or a wrong value, is refused', () => {
    const projection = projectTenantPolicy(
      policy({ limit: {}, tenantFrom: { type: 'Label' }, limits: { services: '2', trafficPerMonth: '10 TB' } }),
    );
    assert.equal(projection.object, undefined);
    assert.deepEqual(messages(projection), [
      'spec.limit is unknown; use priority, namespaceSelector, tenantFrom, pools, nodesPerService, allowedPorts, allowedHosts, allowedEndpointCIDRs, limits, rules',
      'spec.tenantFrom.label is missing; use the key of a label, such as team or example.com/team',
      'spec.limits.services is "2"; use a whole number, 0 or more',
      'spec.limits.trafficPerMonth is "10 TB"; use bytes such as 500Gi, 10Ti or 2e12',
    ]);
  });
});

describe('a Suspension', () => {
  const suspension = (spec: object): object => ({ metadata: { uid: 's', name: 'x' }, spec });

  test('has its target, message and end', () => {
    const target = { type: 'Service', namespace: 'shop', service: 'web' };
    const { object } = projectSuspension(suspension({ target, message: 'abuse', until: '2026-07-01T02:00:00+02:00' }));
    assert.deepEqual(object?.target, { kind: 'service', namespace: 'shop', service: 'web' });
    assert.equal(object?.until, Date.UTC(2026, 6, 1));
    assert.deepEqual([object?.message, object?.rule], ['abuse', null]);
  });

  test('whose target says more than its type uses is refused, for it would cut off more than was meant', () => {
    const target = { type: 'Tenant', tenant: 'shop', service: 'web' };
    assert.deepEqual(messages(projectSuspension(suspension({ target }))), [
      'spec.target.service is "web"; use only tenant with type Tenant',
    ]);
  });
});
