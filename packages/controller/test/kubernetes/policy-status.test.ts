import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { silentLogger, systemClock } from '@weir/runtime';
import { eventually as eventuallyWithin } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { KubeApi } from '../../src/kubernetes/kube-api.ts';
import { loadKubeConfig } from '../../src/kubernetes/kube-config.ts';
import { StatusWriter } from '../../src/status/status-writer.ts';
import {
  type Cluster,
  namespace,
  type RunningController,
  service,
  startCluster,
  startRunningController,
} from '../fixtures/cluster.ts';

interface PolicyJson {
  readonly metadata: { readonly uid: string; readonly generation: number; readonly resourceVersion: string };
  readonly status?: object;
}

const COUNTS = { tenantCount: 0, namespaceCount: 0, refusedCount: 0, overriddenCount: 0 };
const eventually = <T>(assertion: () => Promise<T>): Promise<T> => eventuallyWithin(assertion, { timeoutMs: 30_000 });

/** Returns a policy for namespaces with the label. */
const policy = (name: string, label: string, spec: object = {}): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name },
  spec: { namespaceSelector: { matchExpressions: [{ key: label, operator: 'Exists' }] }, ...spec },
});

describe(
  'the status of a TenantPolicy',
  requireProgram('etcd', 'kube-apiserver', 'kube-controller-manager', 'kubectl'),
  () => {
    let cluster: Cluster;
    let running: RunningController;
    before(async () => {
      cluster = await startCluster();
      running = startRunningController(cluster);
    });
    after(async () => {
      await running?.[Symbol.asyncDispose]();
      await cluster?.[Symbol.asyncDispose]();
    });

    const statusOf = async (name: string): Promise<object | undefined> =>
      (await cluster.get<PolicyJson>('tenantpolicy', name)).status;
    const hasStatus = (name: string, status: object): Promise<void> =>
      eventually(async () => assert.deepEqual(await statusOf(name), { observedGeneration: 1, ...COUNTS, ...status }));
    /** Returns the number of status writes that the API server has answered, with any result. */
    const countWrites = async (): Promise<number> => {
      const metrics = await cluster.kubectl('get', '--raw', '/metrics');
      const counts = metrics
        .split('\n')
        .filter((line) => line.startsWith('apiserver_request_total{') && /resource="tenantpolicies"/.test(line))
        .filter((line) => /subresource="status"/.test(line) && /verb="(APPLY|PATCH|PUT)"/.test(line))
        .map((line) => Number(line.split(' ').at(-1)));
      return counts.reduce((sum, count) => sum + count, 0);
    };
    /**
     * Asserts that `count` status writes happened since `from`. First waits for the status of a new marker policy, because this write
     * comes after all pending writes.
     */
    const assertWrites = async (count: number, from: number): Promise<void> => {
      markers += 1;
      await cluster.apply(policy(`marker-${markers}`, 'none', { priority: -markers }));
      await eventually(async () => assert.ok(await statusOf(`marker-${markers}`)));
      assert.equal((await countWrites()) - from, count + 1);
    };
    let markers = 0;

    test('is readable with kubectl get and kubectl describe', async () => {
      await cluster.apply(
        policy('shop', 'shop', {
          priority: 10,
          tenantFrom: { type: 'Label', label: 'shop' },
          limits: { services: 2, ports: 5, trafficPerMonth: '10Ti' },
        }),
        policy('rest', 'any', { tenantFrom: { type: 'Name', name: 'web' } }),
        namespace('shop-web', { any: '', shop: 'web' }),
        namespace('shop-api', { any: '', shop: 'api' }),
        namespace('shop-test', { any: '', shop: 'web' }),
        namespace('shop-none', { shop: '' }),
        namespace('game', { any: '' }),
      );
      await hasStatus('shop', {
        precedence: 1,
        tenantCount: 2,
        namespaceCount: 3,
        tenants: [
          { name: 'api', namespaces: ['shop-api'] },
          { name: 'web', namespaces: ['shop-test', 'shop-web'] },
        ],
        refusedCount: 1,
        unlabelled: ['shop-none'],
      });
      await hasStatus('rest', {
        precedence: 2,
        refusedCount: 1,
        conflicts: [{ tenant: 'web', policy: 'shop', namespaces: ['game'] }],
        overriddenCount: 3,
        overridden: [{ policy: 'shop', namespaces: ['shop-api', 'shop-test', 'shop-web'] }],
      });
      const [head, ...lines] = (await cluster.kubectl('get', 'tenantpolicies', '--sort-by=.status.precedence'))
        .trim()
        .split('\n')
        .map((line) => line.split(/\s+/).slice(0, -1).join(' '));
      assert.equal(head, 'NAME PRIORITY PRECEDENCE TENANTS NAMESPACES REFUSED MAX-SERVICES MAX-PORTS MAX-TRAFFIC');
      assert.deepEqual(lines, ['shop 10 1 2 3 1 2 5 10Ti', 'rest 0 2 0 0 1']);
      const described = await cluster.kubectl('describe', 'tenantpolicy', 'rest');
      const statusText = described.slice(described.indexOf('Status:'), described.indexOf('Events:'));
      assert.deepEqual(
        statusText
          .trim()
          .split('\n')
          .map((line) => line.trim().replace(/\s+/g, ' ')),
        [
          'Status:',
          'Conflicts:',
          'Namespaces:',
          'game',
          'Policy: shop',
          'Tenant: web',
          'Namespace Count: 0',
          'Observed Generation: 1',
          'Overridden:',
          'Namespaces:',
          'shop-api',
          'shop-test',
          'shop-web',
          'Policy: shop',
          'Overridden Count: 3',
          'Precedence: 2',
          'Refused Count: 1',
          'Tenant Count: 0',
        ],
      );
      await cluster.kubectl('delete', 'tenantpolicy', 'shop', 'rest');
    });

    test('is written once per changed policy when another policy takes a namespace and is deleted', async () => {
      await cluster.apply(policy('low', 'team'), namespace('a', { team: '', vip: '' }), namespace('b', { team: '' }));
      const both = [
        { name: 'a', namespaces: ['a'] },
        { name: 'b', namespaces: ['b'] },
      ];
      await hasStatus('low', { precedence: 1, tenantCount: 2, namespaceCount: 2, tenants: both });
      const before = await countWrites();
      await cluster.apply(policy('high', 'vip', { priority: 1 }));
      await hasStatus('high', { precedence: 1, tenantCount: 1, namespaceCount: 1, tenants: both.slice(0, 1) });
      await hasStatus('low', {
        precedence: 2,
        tenantCount: 1,
        namespaceCount: 1,
        tenants: both.slice(1),
        overriddenCount: 1,
        overridden: [{ policy: 'high', namespaces: ['a'] }],
      });
      await assertWrites(2, before);
      const between = await countWrites();
      await cluster.kubectl('delete', 'tenantpolicy', 'high');
      await hasStatus('low', { precedence: 1, tenantCount: 2, namespaceCount: 2, tenants: both });
      // One write is for the policy `low`. The second write is for the earlier marker policy, because the precedence of that policy
      // changes.
      await assertWrites(2, between);
      await cluster.kubectl('delete', 'tenantpolicy', 'low');
    });

    test('is not written when nothing in it changes', async () => {
      await cluster.apply(policy('calm', 'calm'), namespace('calm', { calm: '' }));
      await hasStatus('calm', {
        precedence: 1,
        tenantCount: 1,
        namespaceCount: 1,
        tenants: [{ name: 'calm', namespaces: ['calm'] }],
      });
      const before = await countWrites();
      await cluster.apply(service('web', 'calm', 80), namespace('elsewhere', { other: '' }));
      await cluster.kubectl('annotate', 'tenantpolicy', 'calm', 'note=x');
      await cluster.kubectl('label', 'namespace', 'calm', 'color=red');
      await running.controller.idle();
      await assertWrites(0, before);
    });

    test('is not written again by a new leader', async () => {
      const before = await countWrites();
      await running[Symbol.asyncDispose]();
      running = startRunningController(cluster);
      await assertWrites(0, before);
    });

    test('is restored after another client writes it, and has the observed generation', async () => {
      const right = await statusOf('calm');
      const before = await countWrites();
      const wrong = JSON.stringify({ status: { precedence: 9, unlabelled: ['x'] } });
      await cluster.kubectl('patch', 'tenantpolicy', 'calm', '--subresource=status', '--type=merge', '-p', wrong);
      await eventually(async () => assert.deepEqual(await statusOf('calm'), right));
      await assertWrites(2, before);
      await cluster.apply(policy('calm', 'calm', { limits: { services: 1 } }));
      await eventually(async () => assert.deepEqual(await statusOf('calm'), { ...right, observedGeneration: 2 }));
    });

    test('has problems that the schema cannot refuse', async () => {
      await cluster.apply(policy('odd', 'odd', { limits: { trafficPerMonth: '500m' } }));
      await eventually(async () => {
        const { problems = [] } = ((await statusOf('odd')) ?? {}) as { problems?: readonly string[] };
        assert.match(problems.join('\n'), /spec\.limits\.trafficPerMonth .*a whole number of bytes/);
      });
      await cluster.apply(policy('odd', 'odd', { limits: { trafficPerMonth: '5M' } }));
      await eventually(async () => {
        const { metadata, status } = await cluster.get<PolicyJson>('tenantpolicy', 'odd');
        assert.equal((status as { observedGeneration: number }).observedGeneration, metadata.generation);
        assert.ok(!('problems' in (status as object)));
      });
    });

    test('names the rules that cannot work', async () => {
      const rules = [
        { name: 'busy', metric: 'requestsPerSecond', above: '80%', action: 'Notify' },
        { name: 'never', metric: 'requestsPerSecond', above: 0, action: 'Notify' },
      ];
      await cluster.apply(policy('later', 'later', { limits: { requestsPerSecond: 5 }, rules }));
      await eventually(async () => {
        const { problems = [] } = ((await statusOf('later')) ?? {}) as { problems?: readonly string[] };
        assert.deepEqual(problems, [
          'rule "never" does not act: spec.rules[1].above is 0; use more than 0, since any traffic is above 0',
        ]);
      });
    });

    test('of another object with the same name is not written, and a kind without status is refused', async () => {
      const api = new KubeApi(loadKubeConfig(cluster.plane.kubeconfig));
      const writer = new StatusWriter({ api, clock: systemClock, log: silentLogger() });
      const calm = 'tenantpolicies/calm';
      const outcomeOf = async (kind: string, path: string, { metadata }: PolicyJson): Promise<string> => {
        const identity = { apiVersion: 'weir.dev/v1alpha1', kind, name: path.split('/').at(-1) ?? '', ...metadata };
        const target = { ...identity, path: `/apis/weir.dev/v1alpha1/${path}` };
        return (await writer.write(target, { status: {}, fingerprint: '' })).kind;
      };
      const before = await cluster.get<PolicyJson>(calm);
      await cluster.kubectl('delete', calm);
      assert.equal(await outcomeOf('TenantPolicy', calm, before), 'gone');
      await cluster.apply(policy('calm', 'calm'));
      assert.equal(await outcomeOf('TenantPolicy', calm, before), 'conflict');
      const spec = { target: { type: 'Tenant', tenant: 'nobody' } };
      await cluster.apply({ apiVersion: 'weir.dev/v1alpha1', kind: 'Suspension', metadata: { name: 'x' }, spec });
      const suspension = await cluster.get<PolicyJson>('suspensions/x');
      assert.equal(await outcomeOf('Suspension', 'suspensions/x', suspension), 'gone');
      assert.equal(await outcomeOf('Suspension', 'suspensions/x', suspension), 'refused');
      api.close();
    });
  },
);
