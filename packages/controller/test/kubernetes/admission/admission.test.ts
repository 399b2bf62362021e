import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { serviceSettingsFor } from '@weir/model';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import { parseService } from '../../../src/parse/service.ts';
import { ANNOTATION_CASES, type AnnotationCase } from '../../fixtures/annotation-cases.ts';
import {
  type ChartRelease,
  type CommandResult,
  startChartRelease,
  tenantService,
} from '../../fixtures/chart-release.ts';
import { type DryRun, startDryRun } from '../../fixtures/dry-run.ts';

/**
 * How long to wait for a policy to take effect. The API server needs a moment to load a policy or its parameters, and up to half a minute
 * to check its types on a busy machine.
 */
const IN_FORCE = { timeoutMs: 120_000 };
const POLICIES = ['annotations', 'external-ips', 'node-ports', 'quota', 'suspensions', 'tenant-usages'].map(
  (each) => `weir-${each}`,
);
const CONTROLLER = 'system:serviceaccount:weir-system:weir-controller';

describe('the admission policies for Services', requireProgram('kubernetes', 'helm'), () => {
  let release: ChartRelease;
  let dryRun: DryRun;
  before(async () => {
    release = await startChartRelease();
    await release.plane.kubectl('create', 'namespace', 'shop');
    for (const by of ['tenant', 'operator'])
      await release.plane.kubectl('create', 'rolebinding', by, '--clusterrole=edit', `--user=${by}`, '-n', 'shop');
    const rights = ['--verb=update', '--resource=tenantpolicies.weir.dev'];
    await release.install('controller.classless=true', 'admission.quota=true');
    await release.plane.kubectl('create', 'clusterrole', 'policies', ...rights);
    await release.plane.kubectl(
      'create',
      'clusterrolebinding',
      'policies',
      '--clusterrole=policies',
      '--user=operator',
    );
    dryRun = startDryRun(release.plane.kubeconfig);
    await eventually(
      async () => assert.notDeepEqual(await warningsOf({ annotations: { algorithm: 'x' } }), []),
      IN_FORCE,
    );
  });
  after(async () => {
    dryRun?.[Symbol.dispose]();
    await release?.[Symbol.asyncDispose]();
  });

  const serviceOf = ({ annotations, udp = false, ports }: AnnotationCase): object =>
    tenantService({
      annotations: Object.fromEntries(Object.entries(annotations).map(([name, value]) => [`weir.dev/${name}`, value])),
      spec: { ports: ports ?? [{ port: 80, protocol: udp ? 'UDP' : 'TCP' }] },
    });
  const warningsOf = async (each: AnnotationCase): Promise<readonly string[]> => {
    const warnings = await dryRun.create('/api/v1/namespaces/shop/services', serviceOf(each));
    const annotationWarnings = warnings.filter((text) => text.includes("'weir-annotations'"));
    return annotationWarnings.map((text) => text.replace(/^.*? binding 'weir-annotations': /s, '')).sort();
  };
  const mistakesOf = (each: AnnotationCase): readonly string[] => {
    const { object, problems } = parseService(withUid(serviceOf(each)));
    assert.ok(object, JSON.stringify(problems));
    const parsed = serviceSettingsFor(object);
    return parsed.kind === 'settings' ? [] : [...parsed.mistakes].sort();
  };

  test('pass the type check of the API server', async () => {
    for (const name of POLICIES) {
      const status = await eventually(async () => {
        const policy = JSON.parse(await release.plane.kubectl('get', 'validatingadmissionpolicy', name, '-o', 'json'));
        assert.equal(policy.status?.observedGeneration, policy.metadata.generation);
        return policy.status;
      }, IN_FORCE);
      assert.deepEqual(status.typeChecking?.expressionWarnings ?? [], [], name);
    }
  });

  describe('for annotations', () => {
    test('warn exactly where the controller refuses, with the same message or the known annotations', async () => {
      const [unknown = ''] = mistakesOf({ annotations: { zzzzzzzz: '' } });
      const [knownNames = ''] = unknown.match(/this version knows .*$/) ?? [];
      assert.match(knownNames, /algorithm, /);
      const differing = await Promise.all(
        ANNOTATION_CASES.map(async (each) => {
          const chart = await warningsOf(each);
          // A policy cannot find the name that a misspelled name is closest to.
          const model = mistakesOf(each).map((text) => text.replace(/did you mean weir\.dev\/[\w-]+\?$/, knownNames));
          return JSON.stringify(chart) === JSON.stringify(model) ? [] : [{ ...each.annotations, chart, model }];
        }),
      );
      assert.deepEqual(differing.flat(), []);
      const refused = ANNOTATION_CASES.filter((each) => mistakesOf(each).length > 0).length;
      assert.ok(refused > 100 && ANNOTATION_CASES.length - refused > 100, `${refused} of ${ANNOTATION_CASES.length}`);
    });

    test('warn about a value that cannot be quoted, and about several unknown annotations', async () => {
      assert.deepEqual(await warningsOf({ annotations: { algorithm: 'first\nlast' } }), [
        'annotation weir.dev/algorithm cannot be honoured as it stands',
      ]);
      const [warning = '', ...more] = await warningsOf({ annotations: { colour: 'red', size: 'XL' } });
      assert.match(warning, /^annotation (weir\.dev\/colour|, |weir\.dev\/size){3} cannot be honoured: this version/);
      assert.deepEqual(more, []);
    });

    test('accept wrong annotations with a warning', async () => {
      const wrong = tenantService({ name: 'wrong', annotations: { 'weir.dev/algorithm': 'fastest' } });
      const { ok, text } = await release.apply(wrong, { by: 'tenant' });
      assert.ok(ok, text);
      assert.match(
        text,
        /^Warning: .*annotation weir\.dev\/algorithm: "fastest" is not allowed; use one of least-connections, /m,
      );
    });

    test('warn only about mistakes that an edit adds', async () => {
      const annotations = { 'weir.dev/algorithm': 'fastest', 'weir.dev/idle-timeout': '1s' };
      const quiet = await release.apply(tenantService({ name: 'wrong', annotations }), { by: 'tenant' });
      assert.ok(quiet.ok && !quiet.text.includes('Warning'), quiet.text);
      const added = { ...annotations, 'weir.dev/idle-timeout': '1 day' };
      const { text } = await release.apply(tenantService({ name: 'wrong', annotations: added }), { by: 'tenant' });
      assert.match(text, /^Warning: .*annotation weir\.dev\/idle-timeout: "1 day" is not allowed/m);
      assert.doesNotMatch(text, /fastest/);
    });

    test('ignore Services that Weir does not take', async () => {
      const annotations = { 'weir.dev/algorithm': 'fastest' };
      const foreign = tenantService({ name: 'foreign', annotations, spec: { loadBalancerClass: 'example.com/other' } });
      const internal = tenantService({ name: 'internal', annotations, spec: { type: 'ClusterIP' } });
      for (const object of [foreign, internal]) {
        const { ok, text } = await release.apply(object, { by: 'tenant' });
        assert.ok(ok && !text.includes('Warning'), text);
      }
    });
  });

  describe('for spec.externalIPs', () => {
    const hijack = (spec: object = {}): object =>
      tenantService({ name: 'hijack', spec: { externalIPs: ['203.0.113.7'], ...spec } });

    test('refuse addresses from tenants on Services of every type', async () => {
      for (const type of ['ClusterIP', 'LoadBalancer']) {
        const { ok, text } = await release.apply(hijack({ type }), { by: 'tenant' });
        assert.equal(ok, false);
        assert.match(
          text,
          /Forbidden.*'weir-external-ips' denied request: spec\.externalIPs: 203\.0\.113\.7 may be added only by/s,
        );
        assert.match(
          text,
          /users who may update tenantpolicies\.weir\.dev, since an external IP takes over the traffic/,
        );
      }
    });

    test('accept addresses from users who may update TenantPolicies', async () => {
      const { ok, text } = await release.apply(hijack(), { by: 'operator' });
      assert.ok(ok, text);
    });

    test('let a tenant edit the Service and remove addresses, but not change them', async () => {
      const edited = await release.apply(hijack({ ports: [{ port: 81 }] }), { by: 'tenant' });
      assert.ok(edited.ok, edited.text);
      const changed = await release.apply(hijack({ externalIPs: ['203.0.113.7', '203.0.113.8'] }), { by: 'tenant' });
      assert.equal(changed.ok, false);
      assert.match(changed.text, /spec\.externalIPs: 203\.0\.113\.8 may/);
      const removed = await release.apply(hijack({ externalIPs: [] }), { by: 'tenant' });
      assert.ok(removed.ok, removed.text);
    });
  });

  test('keep the generated fleet secret over upgrades', async () => {
    const values = ['controller.classless=true', 'admission.quota=true', 'tls.secretAccess=cluster'];
    const secret = (): Promise<string> =>
      release.plane.kubectl('get', 'secret', 'weir-fleet', '-n', 'weir-system', '-o', 'jsonpath={.data.secret}');
    await release.install(...values);
    const made = await secret();
    assert.match(Buffer.from(made, 'base64').toString(), /^[A-Za-z0-9]{64}$/);
    await release.install(...values);
    assert.equal(await secret(), made);
  });

  test('let only the controller write the TenantUsages of its fleet, and everybody with the right delete them', async () => {
    const usages = ['--verb=*', '--resource=tenantusages.weir.dev'];
    await release.plane.kubectl('create', 'role', 'usages', ...usages, '-n', 'shop');
    await release.plane.kubectl('create', 'rolebinding', 'usages', '--role=usages', '--user=tenant', '-n', 'shop');
    const write = (by: string | undefined, name = 'weir'): Promise<CommandResult> =>
      release.apply(tenantUsage('shop', {}, name), {
        ...(by && { by }),
        flags: ['--server-side', '--force-conflicts'],
      });
    for (const by of ['tenant', undefined]) {
      const { ok, text } = await write(by);
      assert.equal(ok, false);
      assert.match(
        text,
        /denied request: only the controller of Weir \(system:serviceaccount:weir-system:weir-controller\)/,
      );
    }
    const own = await write(CONTROLLER);
    assert.ok(own.ok, own.text);
    assert.equal((await write('tenant')).ok, false);
    const otherFleet = await write('tenant', 'other-fleet');
    assert.ok(otherFleet.ok, otherFleet.text);
    const deleted = await release.kubectl('delete', 'tenantusage', 'weir', '-n', 'shop', '--as=tenant');
    assert.ok(deleted.ok, deleted.text);
  });

  describe('for the quota', () => {
    const write = (tenant: object): Promise<CommandResult> =>
      release.apply(tenantUsage('limited', tenant), { by: CONTROLLER, flags: ['--server-side'] });
    const limited = (name: string, ports: number): object => {
      const list = Array.from({ length: ports }, (_, index) => ({ name: `p${index}`, port: 80 + index }));
      return { ...tenantService({ name, spec: { ports: list } }), metadata: { name, namespace: 'limited' } };
    };

    test('accept Services if there are no counts', async () => {
      await release.plane.kubectl('create', 'namespace', 'limited');
      const { ok, text } = await release.apply(limited('first', 1));
      assert.ok(ok, text);
      const unlimited = await write({ services: 1, ports: 1 });
      assert.ok(unlimited.ok, unlimited.text);
      assert.ok((await release.apply(limited('second', 1))).ok);
    });

    test('refuse a Service beyond the limit, with the time of the count', async () => {
      await write({ services: 2, ports: 2, limits: { services: 2 } });
      const refused = await eventually(async () => {
        const { ok, text } = await release.apply(limited('third', 1), { flags: ['--dry-run=server'] });
        assert.equal(ok, false);
        return text;
      }, IN_FORCE);
      assert.match(
        refused,
        /'weir-quota' denied request: 2 of 2 load balancers of tenant "shop" are in use; delete one or ask/,
      );
      assert.match(refused, /counted at 2030-01-01T10:00:00Z; deletions since then are counted within five minutes/);
      const edited = await release.apply(limited('second', 2));
      assert.ok(edited.ok, edited.text);
    });

    test('refuse ports beyond the limit, also on an existing Service', async () => {
      await write({ services: 2, ports: 3, limits: { services: 3, ports: 4 } });
      await eventually(async () => {
        const { ok, text } = await release.apply(limited('third', 2), { flags: ['--dry-run=server'] });
        assert.equal(ok, false);
        assert.match(text, /3 of 4 ports of tenant "shop" are in use, and this Service needs 2; delete one or ask/);
      }, IN_FORCE);
      assert.ok((await release.apply(limited('third', 1), { flags: ['--dry-run=server'] })).ok);
      assert.equal((await release.apply(limited('second', 4), { flags: ['--dry-run=server'] })).ok, false);
      assert.ok((await release.apply(limited('second', 3), { flags: ['--dry-run=server'] })).ok);
    });
  });
});

/** Returns the object with a UID such as an API server assigns. */
function withUid(object: object): object {
  return { ...object, metadata: { ...(object as { metadata: object }).metadata, uid: 'uid' } };
}

function tenantUsage(namespace: string, tenant: object, name = 'weir'): object {
  const counters = { receivedBytes: 0, sentBytes: 0, connections: 0, requests: 0 };
  return {
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'TenantUsage',
    metadata: { name, namespace },
    status: {
      updatedAt: '2030-01-01T10:00:00Z',
      tenant: { name: 'shop', month: '2030-01', ...counters, ...tenant },
    },
  };
}
