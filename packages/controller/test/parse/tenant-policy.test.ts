import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseTenantPolicy } from '../../src/parse/tenant-policy.ts';
import { IMPOSSIBLE_RULE_CASES, RULE_CASES } from '../fixtures/policy-rule-cases.ts';

const messages = (result: { problems: readonly { message: string }[] }): string[] =>
  result.problems.map((each) => each.message);

describe('a TenantPolicy', () => {
  const policy = (spec: object): object => ({ metadata: { uid: 'p', name: 'shops' }, spec });

  test('with an empty spec selects every namespace and limits only the bytes in the routing table', () => {
    const { object, problems } = parseTenantPolicy(policy({}));
    assert.deepEqual(problems, []);
    assert.deepEqual(object?.spec, {
      priority: 0,
      namespaceSelector: { matchLabels: {}, matchExpressions: [] },
      tenantFrom: { kind: 'namespace' },
      grants: {
        pools: ['default'],
        nodesPerService: null,
        maxNodesPerService: null,
        allowedPorts: null,
        allowedHosts: [],
        allowedEndpointCIDRs: [],
      },
      limits: { tableBytes: 4 * 2 ** 20 },
    });
  });

  test('has the grants of its tenants', () => {
    const { object, problems } = parseTenantPolicy(
      policy({
        pools: ['edge', 'default', 'edge'],
        nodesPerService: 3,
        maxNodesPerService: 5,
        allowedPorts: [80, '443', '8000-8999'],
        allowedHosts: ['Shop.Example.com', '*.shop.example.com', 'shop.example.com'],
        allowedEndpointCIDRs: ['10.80.3.4/16', 'fd00::/8'],
      }),
    );
    assert.deepEqual(problems, []);
    assert.deepEqual(object?.spec.grants, {
      pools: ['edge', 'default'],
      nodesPerService: 3,
      maxNodesPerService: 5,
      allowedPorts: [
        { from: 80, to: 80 },
        { from: 443, to: 443 },
        { from: 8_000, to: 8_999 },
      ],
      allowedHosts: ['shop.example.com', '*.shop.example.com'],
      allowedEndpointCIDRs: ['10.80.0.0/16', 'fd00::/8'],
    });
    assert.deepEqual(parseTenantPolicy(policy({ allowedPorts: [] })).object?.spec.grants.allowedPorts, []);
  });

  test('with impossible grants is refused, item by item', () => {
    const wrong = parseTenantPolicy(
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
    const host =
      'use a host such as shop.example.com, or *.shop.example.com for all its subdomains; write international names in punycode (xn--…)';
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

  test('has exact limits, and 0 is a limit', () => {
    const limits = { services: 2, ports: 0, trafficPerMonth: '10Ti', tableBytes: '64Ki' };
    const { object } = parseTenantPolicy(policy({ limits }));
    assert.deepEqual(object?.spec.limits, { ...limits, trafficPerMonth: 10 * 2 ** 40, tableBytes: 65_536 });
  });

  test('limits open connections, new connections and bits per second', () => {
    const limits = { connections: 0, newConnectionsPerSecond: 100, inBitsPerSecond: '1.5G', outBitsPerSecond: 8_000 };
    const { object, problems } = parseTenantPolicy(policy({ limits }));
    assert.deepEqual(problems, []);
    assert.deepEqual(object?.spec.limits, { tableBytes: 4 * 2 ** 20, ...limits, inBitsPerSecond: 1_500_000_000 });
    const wrong = parseTenantPolicy(
      policy({ limits: { connections: '5', inBitsPerSecond: '1 Gbit', outBitsPerSecond: 0.5 } }),
    );
    assert.deepEqual(messages(wrong), [
      'spec.limits.connections is "5"; use a whole number, 0 or more',
      'spec.limits.inBitsPerSecond is "1 Gbit"; use bits such as 100M, 1.5G or 1Gi',
      'spec.limits.outBitsPerSecond is 0.5; use a whole number of bits',
    ]);
  });

  for (const { name, limits, rules, mistake } of RULE_CASES) {
    test(`with ${name} ${mistake === undefined ? 'has all its rules' : 'has only its other rules, and says why'}`, () => {
      const other = { name: 'other', metric: 'inBitsPerSecond', above: '500M', action: 'Notify' };
      const { object, problems } = parseTenantPolicy(policy({ limits, rules: [...rules, other] }));
      const wrong = mistake === undefined ? [] : [rules.length - 1];
      assert.deepEqual(
        object?.spec.rules?.map((rule) => rule.name),
        [...rules.map((rule) => rule.name).filter((_, index) => !wrong.includes(index)), 'other'],
      );
      assert.deepEqual(
        problems.map((problem) => `${problem.code}: ${problem.message}`),
        mistake === undefined ? [] : [`InvalidRule: rule "busy" does not act: ${mistake}`],
      );
    });
  }

  for (const { name, limits, rules, mistake } of IMPOSSIBLE_RULE_CASES) {
    test(`with ${name} has only its other rules, although the CRD accepts the policy`, () => {
      const { object, problems } = parseTenantPolicy(policy({ limits, rules }));
      assert.deepEqual([object?.spec.rules, problems.map(({ message }) => message)], [undefined, [mistake]]);
    });
  }

  test('has rules with thresholds in the unit of the metric', () => {
    const rules = [
      {
        name: 'a',
        metric: 'outBitsPerSecond',
        above: '80%',
        for: '5m',
        action: 'Throttle',
        throttleTo: '10M',
        duration: '2h',
      },
      { name: 'b', metric: 'trafficPerMonth', above: '120%', action: 'Suspend' },
    ];
    const { object } = parseTenantPolicy(policy({ limits: { outBitsPerSecond: '1G', trafficPerMonth: '1T' }, rules }));
    assert.deepEqual(object?.spec.rules, [
      {
        name: 'a',
        metric: 'outBitsPerSecond',
        above: 800_000_000,
        forMs: 300_000,
        action: 'Throttle',
        throttleTo: 10_000_000,
        durationMs: 7_200_000,
      },
      {
        name: 'b',
        metric: 'trafficPerMonth',
        above: 1_200_000_000_000,
        forMs: 0,
        action: 'Suspend',
        throttleTo: null,
        durationMs: null,
      },
    ]);
  });

  test('reports each rule without a name, and nothing else', () => {
    const rule = { metric: 'inBitsPerSecond', above: '1G', action: 'Notify' };
    const reported = messages(parseTenantPolicy(policy({ rules: [rule, rule] })));
    assert.deepEqual(
      reported.map((message) => message.split(';')[0]),
      ['spec.rules[0].name is missing', 'spec.rules[1].name is missing'],
    );
  });

  test('with an unknown field in its selector is refused, since it must not select every namespace', () => {
    const namespaceSelector = {
      matchLabel: { team: 'a' },
      matchExpressions: [{ key: 'a', operator: 'Exists', value: 'b' }],
    };
    const result = parseTenantPolicy(policy({ namespaceSelector, tenantFrom: { names: 'gold' } }));
    assert.equal(result.object, undefined);
    assert.deepEqual(messages(result), [
      'spec.namespaceSelector.matchLabel is unknown; did you mean matchLabels?',
      'spec.namespaceSelector.matchExpressions[0].value is unknown; did you mean values?',
      'spec.tenantFrom.names is unknown; did you mean name?',
    ]);
  });

  test('warns that tenantFrom.name is not used without type Name', () => {
    const { object, problems } = parseTenantPolicy(policy({ tenantFrom: { name: 'gold' } }));
    assert.deepEqual(object?.spec.tenantFrom, { kind: 'namespace' });
    assert.deepEqual(
      problems.map((each) => `${each.severity}: ${each.message}`),
      ['warning: spec.tenantFrom.name is not used with type Namespace; use type Name, or remove it'],
    );
  });

  test('with an unknown field or a wrong value is refused', () => {
    const result = parseTenantPolicy(
      policy({ limit: {}, tenantFrom: { type: 'Label' }, limits: { services: '2', trafficPerMonth: '10 TB' } }),
    );
    assert.equal(result.object, undefined);
    assert.deepEqual(messages(result), [
      'spec.limit is unknown; did you mean limits?',
      'spec.tenantFrom.label is missing; use the key of a label, such as team or example.com/team',
      'spec.limits.services is "2"; use a whole number, 0 or more',
      'spec.limits.trafficPerMonth is "10 TB"; use bytes such as 500Gi, 10Ti or 2e12',
    ]);
  });
});
