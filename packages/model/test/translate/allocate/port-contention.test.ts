// For one port thousands of Services may wait: who gets it next is not to cost as much as asking all of them.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { NO_ALLOCATIONS, type ServiceObject, type TenantLimits, Translator } from '@weir/model';
import { namespace, node, policy, port, service, snapshotOf, team } from '../../fixtures/snapshot.ts';
import { startTranslatorProbe } from '../../fixtures/translator-probe.ts';

const WAITING = 200;
const nameAt = (index: number): string => `s${String(index).padStart(3, '0')}`;
/** Each of a tenant of its own, and as old as its number is low. */
const serviceAt = (index: number, change: Partial<ServiceObject> = {}): ServiceObject =>
  service(`${nameAt(index)}/${nameAt(index)}`, { createdAt: index, ports: [port(8443)], ...change });
const without = (name: string) => (services: readonly ServiceObject[]) => services.filter((each) => each.name !== name);

function startCrowd(
  nodes: Parameters<typeof snapshotOf>[0]['nodes'],
  change: (index: number) => Partial<ServiceObject> = () => ({}),
) {
  const indices = Array.from({ length: WAITING }, (_, index) => index);
  return startTranslatorProbe(
    snapshotOf({
      ...(nodes !== undefined && { nodes }),
      namespaces: indices.map((index) => namespace(nameAt(index))),
      services: indices.map((index) => serviceAt(index, change(index))),
    }),
  );
}

describe('a port for which many wait', () => {
  test('goes to the first of them when it is given up, and nobody else is asked', () => {
    const world = startCrowd([node('n1', '192.0.2.1')]);
    const told = world.accepted('s100');
    assert.match(told, /^port 8443\/TCP is taken by another tenant on the only node/);
    assert.deepEqual(world.step(without('s000')), { looked: ['s001'], changed: ['s001'] });
    assert.deepEqual(world.step(without('s001')), { looked: ['s002'], changed: ['s002'] });
    assert.deepEqual(world.step(without('s150')), { looked: [], changed: [] });
    assert.equal(world.accepted('s100'), told);
  });

  test('goes to as many as there are nodes for', () => {
    const world = startCrowd(
      ['1', '2', '3', '4'].map((each) => node(`n${each}`, `192.0.2.${each}`)),
      () => ({
        annotations: { 'weir.dev/nodes': '2' },
      }),
    );
    const [first = '', second = ''] = world.serving();
    assert.deepEqual([first, second], ['s000', 's001']);
    assert.deepEqual(world.step(without('s000')).changed, ['s002']);
    assert.deepEqual(world.serving(), ['s001', 's002']);
  });

  test('goes past those who need more than it', () => {
    const world = startCrowd([node('n1', '192.0.2.1')], (index) =>
      index === 1
        ? { ports: [port(8443, { name: 'a' }), port(9443, { name: 'b' })] }
        : index === 2
          ? { ports: [port(9443)] }
          : {},
    );
    assert.deepEqual(world.serving(), ['s000', 's002']);
    const { looked, changed } = world.step(without('s000'));
    assert.deepEqual(world.serving(), ['s002', 's003']);
    assert.deepEqual(changed, ['s003']);
    assert.deepEqual(looked, ['s001', 's003'], 's001 has only one port in its way for a moment');
  });

  test('keeps of those who wait nothing of the tenants that there were when they came', async () => {
    const namespaces = [namespace('shop'), namespace('other', { team: 'other' })];
    let snapshot = snapshotOf({ namespaces, services: [] });
    const translator = new Translator(snapshot.settings, NO_ALLOCATIONS);
    const former: WeakRef<TenantLimits>[] = [];
    for (let index = 0; index < 20; index += 1) {
      const limits: TenantLimits = { services: index };
      former.push(new WeakRef(limits));
      const waiting = service(`shop/${nameAt(index)}`, { createdAt: index, ports: [port(8443)] });
      const policies = [policy('other', { namespaceSelector: team('other'), limits })];
      snapshot = { ...snapshot, policies, services: [...snapshot.services, waiting] };
      translator.translate(snapshot);
    }
    const kept = (): number => former.filter((limits) => limits.deref() !== undefined).length;
    assert.ok(await isCollected(() => kept() <= 2), `${kept()} are kept`);
    assert.ok(translator.translate(snapshot).table.entries.size > former.length);
  });
});

/** What a WeakRef refers to stays for the turn in which it was made or read. */
async function isCollected(isGone: () => boolean): Promise<boolean> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let attempt = 0; attempt < 10; attempt += 1) {
    await new Promise(setImmediate);
    collect();
    await new Promise(setImmediate);
    if (isGone()) return true;
  }
  return false;
}
