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
  /node port 3\d{4} is requested, and node ports bypass limits, accounting and cut-off; remove spec\.ports\[\]\.nodePort and set/;

/** How long to wait for a policy to take effect. The API server needs a moment to load a policy. */
const IN_FORCE = { timeoutMs: 30_000 };

interface Spec {
  readonly type: string;
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
  const waitForOutput = (expected: RegExp, object: object): Promise<void> =>
    eventually(async () => {
      const { text } = await release.apply(object, { flags: ['--dry-run=server', '-o', 'yaml'] });
      assert.match(text, expected);
    }, IN_FORCE);
  const assertNoWarning = ({ ok, text }: CommandResult, expected: RegExp): void => {
    assert.ok(ok, text);
    assert.match(text, expected);
    assert.doesNotMatch(text, /Warning/);
  };

  describe('by default on a cluster with MutatingAdmissionPolicy', () => {
    before(async () => {
      await release.apply(tenantService({ name: 'old' }));
      await release.install('controller.classless=true');
      await waitForOutput(/allocateLoadBalancerNodePorts: false/, tenantService({ name: 'probe' }));
      await waitForOutput(
        NUMBERED,
        tenantService({ name: 'probe', spec: { ports: [{ port: 80, nodePort: 31_000 }] } }),
      );
    });

    test('a Service without settings gets no node port and no warning', async () => {
      assertNoWarning(await release.apply(tenantService({ name: 'unmodified' })), /created/);
      assert.equal((await specOf('unmodified')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('unmodified'), undefined);
    });

    test('a Service that asks for node ports gets none', async () => {
      const asking = tenantService({ name: 'unmodified', spec: { allocateLoadBalancerNodePorts: true } });
      assertNoWarning(await release.apply(asking), /configured/);
      assert.equal((await specOf('unmodified')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('unmodified'), undefined);
    });

    test('a Service that becomes a load balancer gets no node port', async () => {
      await release.apply(tenantService({ name: 'becomes', spec: { type: 'ClusterIP' } }));
      assertNoWarning(await release.apply(tenantService({ name: 'becomes' })), /configured/);
      assert.equal((await specOf('becomes')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('becomes'), undefined);
    });

    test('a Service with node ports from before Weir keeps them, and edits cause no warning', async () => {
      const had = await nodePortOf('old');
      assert.ok(had);
      assertNoWarning(await release.apply(tenantService({ name: 'old', labels: { edited: 'yes' } })), /configured/);
      assert.equal((await specOf('old')).allocateLoadBalancerNodePorts, true);
      assert.equal(await nodePortOf('old'), had);
    });

    test('a Service that names a node port gets it with a warning', async () => {
      const numbered = tenantService({ name: 'numbered', spec: { ports: [{ port: 80, nodePort: 31_001 }] } });
      const { ok, text } = await release.apply(numbered);
      assert.ok(ok, text);
      assert.match(text, /^Warning: .*node port 31001 is requested/m);
      assert.equal(text.match(/Warning/g)?.length, 1, text);
      assert.equal(await nodePortOf('numbered'), 31_001);
      assert.equal((await specOf('numbered')).allocateLoadBalancerNodePorts, true);
    });

    test('a Service with node ports has after each change what it has without Weir', async () => {
      const numbered = (nodePort: number) => ({ ports: [{ port: 80, nodePort }] });
      const sequences: readonly (readonly ((nodePort: number) => object)[])[] = [
        [() => ({ type: 'NodePort' }), () => ({}), () => ({ type: 'ClusterIP' })],
        [(nodePort) => ({ type: 'NodePort', ...numbered(nodePort) }), () => ({}), () => ({ type: 'ClusterIP' })],
        [numbered, () => ({ type: 'NodePort' }), () => ({ type: 'ClusterIP' })],
        [numbered, () => ({}), numbered],
      ];
      let nodePort = 31_100;
      const statesOf = async (
        name: string,
        sequence: (typeof sequences)[number],
        annotations: Record<string, string>,
      ) => {
        nodePort += 1;
        const number = nodePort;
        const states: string[] = [];
        for (const step of sequence) {
          const { ok, text } = await release.apply(tenantService({ name, annotations, spec: step(number) }));
          assert.ok(ok, text);
          const { type, allocateLoadBalancerNodePorts, ports } = await specOf(name);
          const port = ports[0]?.nodePort;
          const portText = port === number ? 'the requested port' : port === undefined ? 'no port' : 'any port';
          states.push(`${type} ${allocateLoadBalancerNodePorts} ${portText}`);
        }
        return states;
      };
      for (const [index, sequence] of sequences.entries()) {
        const expected = await statesOf(`plain-${index}`, sequence, { 'weir.dev/ignore': 'true' });
        assert.deepEqual(await statesOf(`taken-${index}`, sequence, {}), expected);
      }
    });

    test('Services that Weir does not take are not changed', async () => {
      const ignored = { name: 'ignored', annotations: { 'weir.dev/ignore': 'true' } };
      for (const options of [ignored, { name: 'other', spec: { loadBalancerClass: 'example.com/other' } }]) {
        assertNoWarning(await release.apply(tenantService(options)), /created/);
        assert.ok(await nodePortOf(options.name));
      }
    });
  });

  describe('with Warn', () => {
    const warned = tenantService({ name: 'warned' });
    before(async () => {
      await release.install('controller.classless=true', 'admission.nodePorts=Warn');
      await waitForOutput(ASKED, tenantService({ name: 'probe' }));
      await waitForOutput(/nodePort: \d/, tenantService({ name: 'probe' }));
    });

    test('a Service that gets node ports is accepted with one warning', async () => {
      const { ok, text } = await release.apply(warned);
      assert.ok(ok, text);
      assert.equal(text.match(/Warning/g)?.length, 1, text);
      assert.match(text, ASKED);
      assert.ok(await nodePortOf('warned'));
    });

    test('an edit causes a warning only if it adds a node port', async () => {
      assertNoWarning(await release.apply(tenantService({ name: 'warned', labels: { edited: 'yes' } })), /configured/);
      const ports = [
        { name: 'http', port: 80 },
        { name: 'more', port: 81 },
      ];
      const { ok, text } = await release.apply(tenantService({ name: 'warned', spec: { ports } }));
      assert.ok(ok, text);
      assert.match(text, NUMBERED);
    });

    test('a Service without node ports causes no warning', async () => {
      const modest = tenantService({ name: 'modest', spec: { allocateLoadBalancerNodePorts: false } });
      assertNoWarning(await release.apply(modest), /created/);
    });
  });

  describe('with Deny', () => {
    before(async () => {
      await release.install('controller.classless=true', 'admission.nodePorts=Deny');
      await waitForOutput(/denied request/, tenantService({ name: 'probe' }));
    });

    test('a manifest without allocateLoadBalancerNodePorts false is refused with the fix', async () => {
      const { ok, text } = await release.apply(tenantService({ name: 'denied' }));
      assert.equal(ok, false);
      assert.match(text, /'weir-node-ports' denied request: /);
      assert.match(text, ASKED);
      assert.match((await release.kubectl('get', 'service', 'denied', '-n', 'shop')).text, /NotFound/);
    });

    test('a manifest that names a node port is refused', async () => {
      const spec = { allocateLoadBalancerNodePorts: false, ports: [{ port: 80, nodePort: 31_002 }] };
      const { ok, text } = await release.apply(tenantService({ name: 'denied', spec }));
      assert.equal(ok, false);
      assert.match(text, NUMBERED);
    });

    test('a manifest with false is accepted, and so is an edit of a Service with node ports', async () => {
      const modest = tenantService({ name: 'polite', spec: { allocateLoadBalancerNodePorts: false } });
      assertNoWarning(await release.apply(modest), /created/);
      assertNoWarning(await release.apply(tenantService({ name: 'old', labels: { edited: 'again' } })), /configured/);
    });

    test('an edit that removes the node ports is accepted', async () => {
      const spec = { allocateLoadBalancerNodePorts: false, ports: [{ port: 80, nodePort: 0 }] };
      assertNoWarning(await release.apply(tenantService({ name: 'old', spec })), /configured/);
      assert.equal((await specOf('old')).allocateLoadBalancerNodePorts, false);
      assert.equal(await nodePortOf('old'), undefined);
    });
  });
});
