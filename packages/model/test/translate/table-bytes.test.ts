// Checks that limits.tableBytes bounds what the Services of one tenant take in the routing table.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  encodeEntry,
  entriesOf,
  NO_ALLOCATIONS,
  type ServiceObject,
  type SliceObject,
  type Snapshot,
  type Translation,
  Translator,
} from '@weir/model';
import { namespace, policy, port, service, slice, snapshotOf, team } from '../fixtures/snapshot.ts';
import { endpointsOf, messageOf, reasonOf, statusOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

const namespaces = [namespace('shop', { team: 'shop' }), namespace('other')];
const limitedTo = (tableBytes: number): Snapshot['policies'] => [
  policy('shop', { namespaceSelector: team('shop'), limits: { tableBytes } }),
];
const ranges = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `10.${index >> 16}.${(index >> 8) & 255}.${index & 255}/32`);
const addresses = (count: number, from = 0): string[] =>
  ranges(from + count)
    .slice(from)
    .map((text) => text.slice(0, -3));
const bytesOf = ({ table }: Translation): number =>
  [...table.entries.values()].reduce((sum, entry) => sum + encodeEntry(entry).length, 0);

describe('the settings of Services in the routing table', () => {
  const large = (index: number): ServiceObject =>
    service(`shop/s${index}`, { createdAt: index, ports: [port(1_000 + index)], sourceRanges: ranges(1_000) });
  const services = Array.from({ length: 50 }, (_, index) => large(index));

  test('are accepted as far as they fit, and refused in words', () => {
    const all = { namespaces, services, policies: limitedTo(100 * 1024) };
    const translation = translateFresh(all);
    const accepted = translation.statuses.filter(({ accepted }) => accepted.reason === 'Accepted');
    assert.deepEqual(
      accepted.map(({ name }) => name),
      ['s0', 's1', 's2', 's3', 's4', 's5'],
    );
    assert.equal(
      messageOf(translation, 'shop/s6'),
      'this Service takes 17 KiB in the routing table, and too little is left of the 100 KiB that tenant "shop" may have (limits.tableBytes); use fewer source ranges, hosts, ports or error pages, delete a Service, or ask for a higher limit in TenantPolicy "shop"',
    );
    assert.equal(reasonOf(translateAfter(translation, { ...all, services: services.slice(1) }), 'shop/s6'), 'Accepted');
  });

  test('stay as they were if new settings do not fit', () => {
    const before = translateFresh({ namespaces, services: [large(0)], policies: limitedTo(30 * 1024) });
    const grown = { ...large(0), sourceRanges: ranges(3_000) };
    const after = translateAfter(before, { namespaces, services: [grown], policies: limitedTo(30 * 1024) });
    assert.match(
      messageOf(after, 'shop/s0'),
      /^the new settings of this Service take another \d+ KiB in the routing table, .*; meanwhile the last accepted settings stay in effect$/,
    );
    assert.equal(entriesOf(after.table, 'service')[0]?.settings?.sourceRanges.length, 1_000);
  });
});

describe('the endpoints of Services in the routing table', () => {
  const small = service('shop/small', { createdAt: 9, ports: [port(80)] });
  const many = service('shop/many', {
    createdAt: 1,
    ports: Array.from({ length: 50 }, (_, index) => port(1_000 + index, { name: `p${index}` })),
  });
  const slices: SliceObject[] = [
    slice('shop/small', addresses(20)),
    slice('shop/many', addresses(500, 20), {
      ports: many.ports.map(({ name }) => ({ name, port: 8080, protocol: 'TCP' })),
    }),
  ];
  const all = { namespaces, services: [small, many], slices };

  test('are left out of the Service that has the most, in words, and stay within the limit', () => {
    const whole = translateFresh({ ...all, policies: limitedTo(4 * 1024 * 1024) });
    assert.equal(endpointsOf(whole).length, 20 + 50 * 500);
    assert.equal(reasonOf(whole, 'shop/many'), 'Accepted');
    const limit = 256 * 1024;
    const cut = translateFresh({ ...all, policies: limitedTo(limit) });
    assert.ok(bytesOf(cut) < 1.1 * limit, `${bytesOf(cut)} bytes`);
    assert.ok(endpointsOf(cut).length > 1_000);
    assert.equal(reasonOf(cut, 'shop/small'), 'Accepted');
    assert.equal(statusOf(cut, 'shop/many').nodes.length, 1, 'the Service stays served');
    assert.equal(
      messageOf(cut, 'shop/many'),
      'some endpoints are not used, because the Services of tenant "shop" may take 256 KiB in the routing table (limits.tableBytes), and each port repeats the endpoints of the Service; use fewer ports or endpoints, or ask for a higher limit in TenantPolicy "shop"',
    );
  });

  test('return when the limit is raised or another Service needs less', () => {
    const policies = limitedTo(80 * 1024);
    const wide = [service('shop/one'), service('shop/two', { ports: [port(81)] })];
    const snapshot = (counts: readonly number[], limits = policies): Snapshot =>
      snapshotOf({
        namespaces,
        services: wide,
        policies: limits,
        slices: counts.map((count, index) => slice(`shop/${index === 0 ? 'one' : 'two'}`, addresses(count))),
      });
    const first = snapshot([2_000, 900]);
    const translator = new Translator(first.settings, NO_ALLOCATIONS);
    const reasons = (each: Snapshot): string[] =>
      entriesOf(translator.translate({ ...each, settings: first.settings }).table, 'service').map(
        ({ accepted }) => accepted.reason,
      );
    assert.deepEqual(reasons(first), ['QuotaExceeded', 'Accepted']);
    assert.deepEqual(reasons(snapshot([2_000, 2_000])), ['QuotaExceeded', 'QuotaExceeded']);
    assert.deepEqual(reasons(snapshot([900, 900])), ['Accepted', 'Accepted']);
    assert.deepEqual(reasons(snapshot([2_000, 2_000])), ['QuotaExceeded', 'QuotaExceeded']);
    assert.deepEqual(reasons(snapshot([2_000, 2_000], limitedTo(2 ** 20))), ['Accepted', 'Accepted']);
  });
});

test('a Service with more ports than the fleet allows is refused, and a served Service keeps its ports', () => {
  const ports = (count: number): ServiceObject['ports'] =>
    Array.from({ length: count }, (_, index) => port(10_000 + index, { name: `p${index}` }));
  const refused = translateFresh({ services: [service('shop/web', { ports: ports(11_600) })] });
  assert.equal(reasonOf(refused, 'shop/web'), 'QuotaExceeded');
  assert.equal(
    messageOf(refused, 'shop/web'),
    'the Service has 11600 ports, and a Service may have at most 100; create several Services, or ask the operator for a higher controller.maxPortsPerService',
  );
  assert.deepEqual(entriesOf(refused.table, 'listener'), []);
  assert.ok(bytesOf(refused) < 20_000, 'the entry of a refused Service is small');
  const served = translateFresh({ services: [service('shop/web', { ports: ports(90) })] });
  const grown = translateAfter(served, { services: [service('shop/web', { ports: ports(300) })] });
  assert.match(messageOf(grown, 'shop/web'), /^the Service has 300 ports, .* at most 100; the further ports are not/);
  assert.equal(entriesOf(grown.table, 'listener').length, 100);
  const fresh = translateFresh({ services: [service('shop/web', { ports: ports(100) })] });
  assert.equal(reasonOf(fresh, 'shop/web'), 'Accepted');
});
