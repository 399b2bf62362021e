// Tests endpoints at addresses and ports that the fleet itself serves. Connections to such endpoints could run in a loop.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type FleetSettings, NO_ALLOCATIONS, type ServiceObject, type Snapshot, Translator } from '@weir/model';
import { namespace, node, pod, policy, port, service, slice, snapshotOf, team } from '../fixtures/snapshot.ts';
import { endpointsOf, messageOf, reasonOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

const N1 = '192.0.2.1';
const FILES = snapshotOf({}).settings;
const PODS: FleetSettings = { ...FILES, trust: { kind: 'pods', serviceCidrs: [] } };
const at = (path: string, number: number): ServiceObject => service(path, { ports: [port(number)] });
const endpoint = (path: string, number: number, protocol = 'TCP'): Snapshot['slices'][number] =>
  slice(path, [N1], { ports: [{ name: null, port: number, protocol }] });

for (const [what, settings] of [
  ['files', FILES],
  ['pods on the host network', PODS],
] as const) {
  describe(`with endpoints from ${what}`, () => {
    const pods = settings === PODS ? [pod('a/host', N1, true), pod('b/host', N1, true)] : [];
    const parts = { settings, pods };

    test('refuses an endpoint that is the listener of its own Service', () => {
      const translation = translateFresh({
        ...parts,
        services: [at('a/web', 8_000)],
        slices: [endpoint('a/web', 8_000), slice('a/web', [N1], { name: 'web-2' })],
      });
      assert.deepEqual(endpointsOf(translation), [`${N1}:8080`]);
      assert.equal(reasonOf(translation, 'a/web'), 'EndpointForbidden');
      assert.match(
        messageOf(translation, 'a/web'),
        /: 192\.0\.2\.1:8000 is an address and port that Weir itself serves; at/,
      );
    });

    test('refuses an endpoint that is a listener of another Service', () => {
      for (const other of ['a/api', 'b/api']) {
        const services = [at('a/web', 8_000), at(other, 8_001)];
        const slices = [endpoint('a/web', 8_001), endpoint(other, 8_000)];
        assert.deepEqual(endpointsOf(translateFresh({ ...parts, services, slices })), [], other);
      }
    });

    test('uses an endpoint at a port that the fleet serves with another protocol or on another node', () => {
      const nodes = [node('n1', N1), node('n2', '192.0.2.2', { unschedulable: true })];
      const udp = service('a/dns', { ports: [port(8_000, { protocol: 'UDP' })] });
      const services = [at('a/web', 80), udp];
      assert.deepEqual(endpointsOf(translateFresh({ ...parts, services, slices: [endpoint('a/web', 8_000)] })), [
        `${N1}:8000`,
      ]);
      const away = translateFresh({
        ...parts,
        nodes,
        pods: pods.map((each) => ({ ...each, ips: ['192.0.2.2'] })),
        services: [at('a/web', 8_000)],
        slices: [slice('a/web', ['192.0.2.2'], { ports: [{ name: null, port: 8_000, protocol: 'TCP' }] })],
      });
      assert.deepEqual(endpointsOf(away), ['192.0.2.2:8000']);
    });

    test('follows every change of the listeners', () => {
      const translator = new Translator(settings, NO_ALLOCATIONS);
      // The objects stay identical, so that the translator does not check all endpoints again.
      const snapshot = snapshotOf({ ...parts, slices: [endpoint('a/web', 8_001)] });
      const web = at('a/web', 80);
      const used = (services: readonly ServiceObject[]): readonly string[] =>
        endpointsOf({ ...translator.translate({ ...snapshot, services }), statuses: [] });
      assert.deepEqual(used([web]), [`${N1}:8001`]);
      const api = at('a/api', 8_001);
      assert.deepEqual(used([api, web]), []);
      assert.deepEqual(used([{ ...api, ports: [port(8_002)] }, web]), [`${N1}:8001`]);
      assert.deepEqual(used([api, web]), []);
      assert.deepEqual(used([web]), [`${N1}:8001`]);
    });

    test('keeps an endpoint in use when a Service of another tenant gets its port, even after a restart', () => {
      const slices = [endpoint('a/web', 8_001)];
      const [web, api] = [at('a/web', 80), at('b/api', 8_001)];
      const before = translateFresh({ ...parts, services: [web], slices });
      const taken = translateAfter(before, { ...parts, services: [web, api], slices });
      assert.deepEqual([endpointsOf(taken), reasonOf(taken, 'a/web')], [[`${N1}:8001`], 'Accepted']);
      const restarted = translateAfter(taken, { ...parts, services: [web, api], slices });
      assert.deepEqual(endpointsOf(restarted), [`${N1}:8001`]);
      const left = translateAfter(restarted, { ...parts, services: [web, api], slices: [] });
      assert.deepEqual(endpointsOf(translateAfter(left, { ...parts, services: [web, api], slices })), []);
    });
  });
}

test('keeps an endpoint in use when a policy takes the name of its tenant, and a Service of this policy gets its port', () => {
  const yields = (name: string, priority: number) =>
    policy(name, { namespaceSelector: team(name), tenantFrom: { kind: 'name', name: 'gold' }, priority });
  const parts = {
    settings: PODS,
    pods: [pod('b/host', N1, true)],
    namespaces: [namespace('a', { team: 'a' }), namespace('b', { team: 'b' })],
    slices: [endpoint('b/web', 8_001)],
  };
  const before = translateFresh({ ...parts, policies: [yields('b', 1)], services: [at('b/web', 80)] });
  const policies = [yields('b', 1), yields('a', 2)];
  const after = translateAfter(before, { ...parts, policies, services: [at('b/web', 80), at('a/api', 8_001)] });
  assert.deepEqual([reasonOf(after, 'b/web'), reasonOf(after, 'a/api')], ['TenantConflict', 'Accepted']);
  assert.deepEqual(endpointsOf(after), [`${N1}:8001`]);
});

test('refuses the unspecified address in files', () => {
  const slices = [slice('a/web', ['0.0.0.0', '10.0.0.1'])];
  const translation = translateFresh({ services: [service('a/web')], slices });
  assert.deepEqual(endpointsOf(translation), ['10.0.0.1:8080']);
  assert.match(messageOf(translation, 'a/web'), /0\.0\.0\.0 is the unspecified address/);
});
