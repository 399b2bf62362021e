import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import {
  type ChartRelease,
  type CommandResult,
  startChartRelease,
  tenantService,
} from '../../fixtures/chart-release.ts';

const ASKED =
  /spec\.allocateLoadBalancerNodePorts is not false, and node ports bypass limits, accounting and cut-off; set it to false/;
const NUMBERED =
  /node port 3\d{4} is asked for, and node ports bypass limits, accounting and cut-off; remove spec\.ports\[\]\.nodePort and set/;

/** A policy is in force a moment after it is there. */
const IN_FORCE = { timeoutMs: 30_000 };

interface Spec {
  readonly allocateLoadBalancerNodePorts?: boolean;
  readonly ports: readonly { readonly nodePort?: number }[];
}

describe('node ports of Services that Weir takes', requireProgram('kubernetes', 'helm'), () => {
  let release: ChartRelease;
  before(async () => {
    release = await startChartRelease();
    await release.plane.kubectl('create', 'namespace', 'shop');
  });
  after(() => release?.[Symbol.asyncDispose]());

  const specOf = async (name: string): Promise<Spec> =>
    JSON.parse(await release.plane.kubectl('get', 'service', name, '-n', 'shop', '-o', 'json')).spec;
  const nodePortOf = async (name: string): Promise<number | undefined> => (await specOf(name)).ports[0]?.nodePort;
  const once = (expected: RegExp, object: object): Promise<void> =>
    eventually(async () => {
      const { text } = await release.apply(object, { flags: ['--dry-run=server', '-o', 'yaml'] });
      assert.match(text, expected);
    }, IN_FORCE);
  const isQuietly = ({ ok, text }: CommandResult, what: RegExp): void => {
    assert.ok(ok, text);
    assert.match(text, what);
    assert.doesNotMatch(text, /Warning/);
  };

  describe('where the cluster serves MutatingAdmissionPolicy and nothing else was said', () => {
    before(async () => {
      await release.apply(tenantService({ name: 'old' }));
      await release.install('controller.classless=true');
      await once(/allocateLoadBalancerNodePorts: false/, tenantService({ name: 'probe' }));
      await once(NUMBERED, tenantService({ name: 'probe', spec: { ports: [{ port: 80, nodePort: 31_000 }] } }));
    });

    test('an unmodified Service gets none, and nobody is bothered', async () => {
      isQuietly(await release.apply(tenantService({ name: 'unmodified' })), /created/);
      assert.equal((await specOf('unmodified')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('unmodified'), undefined);
    });

    test('it stays without when it is replaced by the same manifest, or asks in so many words', async () => {
      const asking = tenantService({ name: 'unmodified', spec: { allocateLoadBalancerNodePorts: true } });
      isQuietly(await release.apply(asking), /configured/);
      assert.equal((await specOf('unmodified')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('unmodified'), undefined);
    });

    test('a Service that becomes a load balancer gets none', async () => {
      await release.apply(tenantService({ name: 'becomes', spec: { type: 'ClusterIP' } }));
      isQuietly(await release.apply(tenantService({ name: 'becomes' })), /configured/);
      assert.equal((await specOf('becomes')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('becomes'), undefined);
    });

    test('one that had them before Weir came keeps them, and is edited without a word', async () => {
      const had = await nodePortOf('old');
      assert.ok(had);
      isQuietly(await release.apply(tenantService({ name: 'old', labels: { edited: 'yes' } })), /configured/);
      assert.equal((await specOf('old')).allocateLoadBalancerNodePorts, true);
      assert.equal(await nodePortOf('old'), had);
    });

    test('who asks for one by number gets it, and is told', async () => {
      const numbered = tenantService({ name: 'numbered', spec: { ports: [{ port: 80, nodePort: 31_001 }] } });
      const { ok, text } = await release.apply(numbered);
      assert.ok(ok, text);
      assert.match(text, /^Warning: .*node port 31001 is asked for/m);
      assert.equal(await nodePortOf('numbered'), 31_001);
    });

    test('Services that Weir does not take are left alone', async () => {
      const ignored = { name: 'ignored', annotations: { 'weir.dev/ignore': 'true' } };
      for (const options of [ignored, { name: 'other', spec: { loadBalancerClass: 'example.com/other' } }]) {
        isQuietly(await release.apply(tenantService(options)), /created/);
        assert.ok(await nodePortOf(options.name));
      }
    });
  });

  describe('with Warn', () => {
    const warned = tenantService({ name: 'warned' });
    before(async () => {
      await release.install('controller.classless=true', 'admission.nodePorts=Warn');
      await once(ASKED, tenantService({ name: 'probe' }));
      await once(/nodePort: \d/, tenantService({ name: 'probe' }));
    });

    test('whoever applies one that gets them is told once, and it is taken', async () => {
      const { ok, text } = await release.apply(warned);
      assert.ok(ok, text);
      assert.equal(text.match(/Warning/g)?.length, 1, text);
      assert.match(text, ASKED);
      assert.ok(await nodePortOf('warned'));
    });

    test('an edit is not told again, unless it opens another one', async () => {
      isQuietly(await release.apply(tenantService({ name: 'warned', labels: { edited: 'yes' } })), /configured/);
      const ports = [
        { name: 'http', port: 80 },
        { name: 'more', port: 81 },
      ];
      const { ok, text } = await release.apply(tenantService({ name: 'warned', spec: { ports } }));
      assert.ok(ok, text);
      assert.match(text, NUMBERED);
    });

    test('one that asks for none is not told', async () => {
      const modest = tenantService({ name: 'modest', spec: { allocateLoadBalancerNodePorts: false } });
      isQuietly(await release.apply(modest), /created/);
    });
  });

  describe('with Deny', () => {
    before(async () => {
      await release.install('controller.classless=true', 'admission.nodePorts=Deny');
      await once(/denied request/, tenantService({ name: 'probe' }));
    });

    test('a manifest that does not say false is refused, with what to do', async () => {
      const { ok, text } = await release.apply(tenantService({ name: 'denied' }));
      assert.equal(ok, false);
      assert.match(text, /'weir-node-ports' denied request: /);
      assert.match(text, ASKED);
      assert.match((await release.kubectl('get', 'service', 'denied', '-n', 'shop')).text, /NotFound/);
    });

    test('so is one that asks by number', async () => {
      const spec = { allocateLoadBalancerNodePorts: false, ports: [{ port: 80, nodePort: 31_002 }] };
      const { ok, text } = await release.apply(tenantService({ name: 'denied', spec }));
      assert.equal(ok, false);
      assert.match(text, NUMBERED);
    });

    test('one that says false is taken, and so is an edit of one that has them', async () => {
      const modest = tenantService({ name: 'polite', spec: { allocateLoadBalancerNodePorts: false } });
      isQuietly(await release.apply(modest), /created/);
      isQuietly(await release.apply(tenantService({ name: 'old', labels: { edited: 'again' } })), /configured/);
    });

    test('who clears them as told is not refused', async () => {
      const spec = { allocateLoadBalancerNodePorts: false, ports: [{ port: 80, nodePort: 0 }] };
      isQuietly(await release.apply(tenantService({ name: 'old', spec })), /configured/);
      assert.equal((await specOf('old')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('old'), undefined);
    });
  });
});
