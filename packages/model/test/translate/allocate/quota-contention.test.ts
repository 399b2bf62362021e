// A tenant that is full may have thousands of Services that wait: what happens to one of them is not to cost as much as all of them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServiceObject, Snapshot } from '@weir/model';
import { namespace, policy, port, service, snapshotOf, team } from '../../fixtures/snapshot.ts';
import { startTranslatorProbe } from '../../fixtures/translator-probe.ts';

/** Of so many each is told by name who is in its way. */
const CROWD = 100;
const namespaces = [namespace('shop', { team: 'shop' }), namespace('other')];
type Limits = { readonly services?: number; readonly ports?: number };
type Policies = Snapshot['policies'];
const shop = (limits: Limits): Policies => [policy('shop', { namespaceSelector: team('shop'), limits })];

/** The ports of its own are free, and it is as old as its number is low. */
const serviceAt = (index: number, ports = 1): ServiceObject =>
  service(`shop/s${String(index).padStart(3, '0')}`, {
    createdAt: index,
    ports: Array.from({ length: ports }, (_, each) => port(11_000 + 10 * index + each, { name: `p${each}` })),
  });
const upTo = (count: number): ServiceObject[] => Array.from({ length: count }, (_, index) => serviceAt(index));
const without = (name: string) => (services: readonly ServiceObject[]) => services.filter((each) => each.name !== name);
const withOne = (young: ServiceObject) => (services: readonly ServiceObject[]) => [...services, young];
const annotated = (name: string) => (services: readonly ServiceObject[]) =>
  services.map((each) =>
    each.name === name ? { ...each, annotations: { ...each.annotations, 'weir.dev/algorithm': 'first' } } : each,
  );

const startWorld = (services: readonly ServiceObject[], limits: Limits) =>
  startTranslatorProbe(snapshotOf({ namespaces, services, policies: shop(limits) }));

describe('of a tenant that is full, and for whose limits many wait', () => {
  test('a change looks at what it touches, and at nobody else who waits', () => {
    const world = startWorld([...upTo(3 + 2 * CROWD), service('other/web')], { services: 3 });
    assert.deepEqual(world.serving('shop'), ['s000', 's001', 's002']);
    assert.deepEqual(world.step(annotated('s001')), { looked: ['s001'], changed: ['s001'] });
    assert.deepEqual(world.step(annotated('s150')), { looked: ['s150'], changed: [] });
    assert.deepEqual(world.step(annotated('web')), { looked: ['web'], changed: ['web'] });
    assert.deepEqual(world.step(withOne(serviceAt(900))), { looked: ['s900'], changed: ['s900'] });
    assert.deepEqual(world.step(without('s150')), { looked: [], changed: [] });
  });

  test('a place that is given up goes to the first who waits, and all others read what they read before', () => {
    const world = startWorld(upTo(3 + 2 * CROWD), { services: 3 });
    const told = world.accepted('s100');
    assert.equal(
      told,
      'all 3 load balancers that tenant "shop" may have are in use, and many more wait; delete some or ask for a higher limit in TenantPolicy "shop"',
    );
    assert.deepEqual(world.step(without('s000')), { looked: ['s003'], changed: ['s003'] });
    assert.deepEqual(world.serving('shop'), ['s001', 's002', 's003']);
    assert.equal(world.accepted('s100'), told);
  });

  test('the same where listener ports are what is counted: who needs more of them than there are waits on', () => {
    const services = Array.from({ length: 3 + 2 * CROWD }, (_, index) => serviceAt(index, index === 3 ? 3 : 2));
    const world = startWorld(services, { ports: 6 });
    assert.match(world.accepted('s003'), /^of the 6 listener ports .* too few are left for the 3 of this Service; /);
    assert.deepEqual(world.step(without('s000')), { looked: ['s004'], changed: ['s004'] });
    assert.deepEqual(world.serving('shop'), ['s001', 's002', 's004']);
  });

  test('with one listener port in all, each is told so', () => {
    const services = Array.from({ length: 2 + CROWD }, (_, index) => serviceAt(index, 1));
    const world = startWorld(services, { ports: 1 });
    assert.match(
      world.accepted('s003'),
      /^the only listener port that tenant "shop" may have is in use, and many more wait; delete some or ask/,
    );
  });

  test('a higher limit lets in as many as it has room for, by rank', () => {
    const world = startWorld(upTo(3 + 2 * CROWD), { services: 3 });
    world.step((services) => services, shop({ services: 10 }));
    assert.deepEqual(
      world.serving('shop'),
      upTo(10).map(({ name }) => name),
    );
    const { changed } = world.step((services) => services, shop({ services: 2 }));
    assert.ok(changed.length > CROWD, 'the limit is another for all');
    assert.deepEqual(world.serving('shop').length, 10, 'what serves goes on');
  });

  test('where few wait, each is told by name who is in its way, and that is so from the first on who makes them few', () => {
    const world = startWorld(upTo(1 + CROWD), { services: 1 });
    const named = '1 of 1 load balancers of tenant "shop" are in use (s000); ';
    assert.ok(world.accepted('s050').startsWith(named));
    assert.equal(world.step(withOne(serviceAt(900))).changed.length, CROWD + 1, 'one more is one too many');
    assert.match(
      world.accepted('s050'),
      /^the only load balancer that tenant "shop" may have is in use, and many more wait; delete some or ask/,
    );
    assert.deepEqual(world.step(withOne(serviceAt(901))).changed, ['s901']);
    assert.deepEqual(world.step(without('s900')).changed, []);
    assert.equal(world.step(without('s901')).changed.length, CROWD);
    assert.ok(world.accepted('s050').startsWith(named));
  });

  test('many that serve over a lowered limit read the same while they become fewer', () => {
    const world = startWorld(upTo(2 * CROWD), {});
    world.step((services) => services, shop({ services: 1 }));
    assert.deepEqual(world.step(without('s000')), { looked: [], changed: [] });
    assert.equal(world.serving('shop').length, 2 * CROWD - 1);
  });
});

test('what one tenant does touches none of those that wait for a port of another', () => {
  const waiting = Array.from({ length: 50 }, (_, index) =>
    service(`other/w${index}`, { createdAt: 1_000 + index, ports: [port(11_000)] }),
  );
  const world = startWorld([serviceAt(0), serviceAt(1), ...waiting], {});
  assert.deepEqual(world.step(without('s001')), { looked: [], changed: [] });
  assert.deepEqual(world.step(annotated('s000')), { looked: ['s000'], changed: ['s000'] });
});
