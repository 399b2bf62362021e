// Checks that a change of one Service does not cost a decision for each of the thousands of Services that may wait for the limits of the
// tenant.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServiceObject, Snapshot } from '@weir/model';
import { namespace, policy, port, service, snapshotOf, team } from '../../fixtures/snapshot.ts';
import { startTranslatorProbe } from '../../fixtures/translator-probe.ts';

/** If more Services than this wait, messages do not name the Services that use up the limit. */
const CROWD = 100;
const namespaces = [namespace('shop', { team: 'shop' }), namespace('other')];
type Limits = { readonly services?: number; readonly ports?: number };
type Policies = Snapshot['policies'];
const shop = (limits: Limits): Policies => [policy('shop', { namespaceSelector: team('shop'), limits })];

/** Returns the Service with this index, with ports that no other Service has. A Service with a lower index is older. */
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

const startTenant = (services: readonly ServiceObject[], limits: Limits) =>
  startTranslatorProbe(snapshotOf({ namespaces, services, policies: shop(limits) }));

describe('a tenant at its limits with many waiting Services', () => {
  test('decides only the Services that a change affects', () => {
    const probe = startTenant([...upTo(3 + 2 * CROWD), service('other/web')], { services: 3 });
    assert.deepEqual(probe.serving('shop'), ['s000', 's001', 's002']);
    assert.deepEqual(probe.step(annotated('s001')), { looked: ['s001'], changed: ['s001'] });
    assert.deepEqual(probe.step(annotated('s150')), { looked: ['s150'], changed: [] });
    assert.deepEqual(probe.step(annotated('web')), { looked: ['web'], changed: ['web'] });
    assert.deepEqual(probe.step(withOne(serviceAt(900))), { looked: ['s900'], changed: ['s900'] });
    assert.deepEqual(probe.step(without('s150')), { looked: [], changed: [] });
  });

  test('gives released capacity to the first waiting Service, and keeps the messages of the others', () => {
    const probe = startTenant(upTo(3 + 2 * CROWD), { services: 3 });
    const message = probe.accepted('s100');
    assert.equal(
      message,
      'all 3 load balancers that tenant "shop" may have are in use, and many more Services wait; delete some Services or ask for a higher limit in TenantPolicy "shop"',
    );
    assert.deepEqual(probe.step(without('s000')), { looked: ['s003'], changed: ['s003'] });
    assert.deepEqual(probe.serving('shop'), ['s001', 's002', 's003']);
    assert.equal(probe.accepted('s100'), message);
  });

  test('gives released ports to the first waiting Service that needs no more than these', () => {
    const services = Array.from({ length: 3 + 2 * CROWD }, (_, index) => serviceAt(index, index === 3 ? 3 : 2));
    const probe = startTenant(services, { ports: 6 });
    assert.match(
      probe.accepted('s003'),
      /may have 6 listener ports, of which too few are left for this Service, which needs 3, and many more Services wait; /,
    );
    assert.deepEqual(probe.step(without('s000')), { looked: ['s004'], changed: ['s004'] });
    assert.deepEqual(probe.serving('shop'), ['s001', 's002', 's004']);
  });

  test('reports a limit of one listener port', () => {
    const services = Array.from({ length: 2 + CROWD }, (_, index) => serviceAt(index, 1));
    const probe = startTenant(services, { ports: 1 });
    assert.match(
      probe.accepted('s003'),
      /^the only listener port that tenant "shop" may have is in use, and many more Services wait; delete some Services or ask/,
    );
  });

  test('accepts as many Services as a higher limit allows, by priority', () => {
    const probe = startTenant(upTo(3 + 2 * CROWD), { services: 3 });
    probe.step((services) => services, shop({ services: 10 }));
    assert.deepEqual(
      probe.serving('shop'),
      upTo(10).map(({ name }) => name),
    );
    const { changed } = probe.step((services) => services, shop({ services: 2 }));
    assert.ok(changed.length > CROWD, 'the limit in the message of every waiting Service changes');
    assert.deepEqual(probe.serving('shop').length, 10, 'served Services stay served');
  });

  test('names the Services that use the limit as soon as few Services wait', () => {
    const probe = startTenant(upTo(1 + CROWD), { services: 1 });
    const named = '1 of 1 load balancers of tenant "shop" are in use (s000); ';
    assert.ok(probe.accepted('s050').startsWith(named));
    assert.equal(
      probe.step(withOne(serviceAt(900))).changed.length,
      CROWD + 1,
      'one more waiting Service changes the messages of all',
    );
    assert.match(
      probe.accepted('s050'),
      /^the only load balancer that tenant "shop" may have is in use, and many more Services wait; delete some Services or ask/,
    );
    assert.deepEqual(probe.step(withOne(serviceAt(901))).changed, ['s901']);
    assert.deepEqual(probe.step(without('s900')).changed, []);
    assert.equal(probe.step(without('s901')).changed.length, CROWD);
    assert.ok(probe.accepted('s050').startsWith(named));
  });

  test('keeps the messages of many Services above a lowered limit while their number falls', () => {
    const probe = startTenant(upTo(2 * CROWD), {});
    probe.step((services) => services, shop({ services: 1 }));
    assert.deepEqual(probe.step(without('s000')), { looked: [], changed: [] });
    assert.equal(probe.serving('shop').length, 2 * CROWD - 1);
  });
});

test('does not decide Services that wait for a port of another tenant', () => {
  const waiting = Array.from({ length: 50 }, (_, index) =>
    service(`other/w${index}`, { createdAt: 1_000 + index, ports: [port(11_000)] }),
  );
  const probe = startTenant([serviceAt(0), serviceAt(1), ...waiting], {});
  assert.deepEqual(probe.step(without('s001')), { looked: [], changed: [] });
  assert.deepEqual(probe.step(annotated('s000')), { looked: ['s000'], changed: ['s000'] });
});
