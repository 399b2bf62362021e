import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  DEFAULT_FLEET_SETTINGS,
  parsePortRange,
  reservedSharedPorts,
  type ServiceObject,
  UNRESTRICTED_GRANTS,
} from '@weir/model';
import { node, policy, port, service } from '../../fixtures/snapshot.ts';
import { messageOf, portsOf, reasonOf, statusOf, translateAfter, translateFresh } from '../../fixtures/translation.ts';

const settings = {
  ...DEFAULT_FLEET_SETTINGS,
  reservedPorts: [
    { from: 9_100, to: 9_100 },
    { from: 4_000, to: 4_010 },
  ],
};
const on = (path: string, ...numbers: readonly number[]): ServiceObject =>
  service(path, { ports: numbers.map((number) => port(number, { name: `p${number}` })) });
const nodes = [node('n1', '192.0.2.1'), node('n2', '192.0.2.2')];

describe('ports that the operator reserves', () => {
  test('are refused for TCP and UDP with their range, while neighbouring ports are accepted', () => {
    const udp = service('a/udp', { ports: [port(4_010, { protocol: 'UDP' })] });
    const translation = translateFresh({
      settings,
      services: [on('a/tcp', 9_100), udp, on('a/beside', 9_101, 3_999, 4_011)],
    });
    assert.equal(reasonOf(translation, 'a/tcp'), 'PortReserved');
    assert.equal(
      messageOf(translation, 'a/tcp'),
      'port 9100/TCP is reserved on the nodes for programs of the operator; use another port',
    );
    assert.match(
      messageOf(translation, 'a/udp'),
      /4010\/UDP is reserved on the nodes for .* \(like the whole range 4000-4010\); /,
    );
    assert.equal(reasonOf(translation, 'a/beside'), 'Accepted');
  });

  test('are refused in addition to the built-in reservations', () => {
    const services = [22, 2_380, 6_443, 8_687, 10_259, 30_000, 32_767].map((number) => on(`a/p${number}`, number));
    const translation = translateFresh({ settings, services });
    for (const { name } of services) assert.equal(reasonOf(translation, `a/${name}`), 'PortReserved');
  });

  test('are kept by a Service that has them, with a warning', () => {
    const services = [on('a/web', 80, 9_100)];
    const before = translateFresh({ services });
    const after = translateAfter(before, { settings, services });
    assert.equal(reasonOf(after, 'a/web'), 'Accepted');
    assert.deepEqual(portsOf(after, 'a/web'), portsOf(before, 'a/web'));
    const over = statusOf(after, 'a/web').degraded.find(({ reason }) => reason === 'OverLimit');
    assert.equal(
      over?.message,
      'port 9100/TCP is now reserved on the nodes; the Service keeps its present nodes, but cannot get a port back after releasing it; use another port',
    );
    assert.equal(
      statusOf(before, 'a/web').degraded.some(({ reason }) => reason === 'OverLimit'),
      false,
    );
  });

  test('are kept on the present nodes only, and return with these nodes', () => {
    const services = [on('a/web', 9_100)];
    const before = translateFresh({ nodes: nodes.slice(0, 1), services });
    const more = translateAfter(before, { settings, nodes, services });
    assert.deepEqual(portsOf(more, 'a/web'), ['n1:9100']);
    const without = translateAfter(more, { settings, nodes: [], services });
    assert.equal(reasonOf(without, 'a/web'), 'Accepted');
    const back = translateAfter(without, { settings, nodes: nodes.slice(0, 1), services });
    assert.deepEqual(portsOf(back, 'a/web'), ['n1:9100']);
  });

  test('cannot be allocated again after they are released', () => {
    const before = translateAfter(translateFresh({ services: [on('a/web', 80, 9_100)] }), {
      settings,
      services: [on('a/web', 80)],
    });
    const after = translateAfter(before, { settings, services: [on('a/web', 80, 9_100)] });
    assert.equal(reasonOf(after, 'a/web'), 'PortReserved');
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
  });

  test('cannot be added to a served Service', () => {
    const before = translateFresh({ settings, services: [on('a/web', 80)] });
    const after = translateAfter(before, { settings, services: [on('a/web', 80, 4_005)] });
    assert.deepEqual(portsOf(after, 'a/web'), ['n1:80']);
    assert.equal(statusOf(after, 'a/web').ports[1]?.error?.reason, 'PortReserved');
  });

  test('cannot be shared ports as well', () => {
    assert.deepEqual(reservedSharedPorts({ ...settings, sharedPorts: [443, 4_010, 9_100] }), [4_010, 9_100]);
  });

  test("are reported in the order of the Service's ports", () => {
    const hosts = policy('all', { grants: { ...UNRESTRICTED_GRANTS, allowedHosts: ['*.example'] } });
    const parts = { settings: { ...DEFAULT_FLEET_SETTINGS, sharedPorts: [443] }, policies: [hosts] };
    const annotations = { 'weir.dev/hosts': 'shop.example', 'weir.dev/tls-passthrough': 'true' };
    const had = { ...parts, services: [{ ...on('a/web', 443), annotations }] };
    const withoutNodes = translateAfter(translateFresh({ ...had, nodes }), { ...had, nodes: [] });
    const message = messageOf(
      translateAfter(withoutNodes, { ...parts, nodes: [], services: [on('a/web', 22, 443, 81)] }),
      'a/web',
    );
    assert.match(message, /^port 22\/TCP is reserved .*; port 443\/TCP is shared .*; the other ports are served$/);
  });
});

test('parses port ranges strictly', () => {
  assert.deepEqual(['443', '1-65535', '8000-8000'].map(parsePortRange), [
    { from: 443, to: 443 },
    { from: 1, to: 65_535 },
    { from: 8_000, to: 8_000 },
  ]);
  for (const wrong of ['', '0', '65536', '0-80', '80-', '-80', '90-80', '80-70000', '080', '8e1', ' 80', '1-2-3', 'x'])
    assert.equal(parsePortRange(wrong), undefined, wrong);
});
