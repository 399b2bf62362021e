// Checks that a released port does not cost a decision for each of the thousands of Services that may wait for the port.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { NO_ALLOCATIONS, type ServiceObject, type TenantLimits, Translator } from '@weir/model';
import { namespace, node, policy, port, service, snapshotOf, team } from '../../fixtures/snapshot.ts';
import { startTranslatorProbe } from '../../fixtures/translator-probe.ts';

const WAITING = 200;
const nameAt = (index: number): string => `s${String(index).padStart(3, '0')}`;
/** Returns the Service with this index, in a tenant for this Service alone. A Service with a lower index is older. */
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

describe('a port for which many Services wait', () => {
  test('goes to the first waiting Service when it is released, without a decision for the others', () => {
    const probe = startCrowd([node('n1', '192.0.2.1')]);
    const message = probe.accepted('s100');
    assert.match(message, /^port 8443\/TCP is taken by another tenant on the only node/);
    assert.deepEqual(probe.step(without('s000')), { looked: ['s001'], changed: ['s001'] });
    assert.deepEqual(probe.step(without('s001')), { looked: ['s002'], changed: ['s002'] });
    assert.deepEqual(probe.step(without('s150')), { looked: [], changed: [] });
    assert.equal(probe.accepted('s100'), message);
  });

  test('goes to as many Services as there are nodes', () => {
    const probe = startCrowd(
      ['1', '2', '3', '4'].map((each) => node(`n${each}`, `192.0.2.${each}`)),
      () => ({
        annotations: { 'weir.dev/nodes': '2' },
      }),
    );
    assert.deepEqual(probe.serving(), ['s000', 's001', 's002', 's003']);
    assert.deepEqual(probe.step(without('s000')).changed, ['s004']);
    assert.deepEqual(probe.serving(), ['s001', 's002', 's003', 's004']);
  });

  test('skips a Service that needs another taken port as well', () => {
    const probe = startCrowd([node('n1', '192.0.2.1')], (index) =>
      index === 1
        ? { ports: [port(8443, { name: 'a' }), port(9443, { name: 'b' })] }
        : index === 2
          ? { ports: [port(9443)] }
          : {},
    );
    assert.deepEqual(probe.serving(), ['s000', 's002']);
    const { looked, changed } = probe.step(without('s000'));
    assert.deepEqual(probe.serving(), ['s002', 's003']);
    assert.deepEqual(changed, ['s003']);
    assert.deepEqual(looked, ['s001', 's003'], 'the message of s001 changes while only one of its ports is taken');
  });

  test('keeps no objects of former snapshots for the Services that wait', async () => {
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

/**
 * Reports whether `isGone` returns true after a garbage collection. Waits for the next turn of the event loop first, because the target
 * of a WeakRef stays alive until the end of the turn in which the WeakRef was created or read.
 */
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
