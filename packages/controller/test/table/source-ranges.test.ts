// Checks that Services with thousands of source ranges do not hold the event loop of the leader, which also renews the Lease.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceSettingsFor } from '@weir/model';
import { systemClock } from '@weir/runtime';
import { parseService } from '../../src/parse/service.ts';
import { parseSettingsInTurns } from '../../src/table/parse-settings-in-turns.ts';
import { createKindWatch } from '../../src/watch/kubernetes/kind-cache.ts';
import { WATCHED_KINDS } from '../../src/watch/kubernetes/watched-kinds.ts';

const RANGES = Array.from({ length: 10_000 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`);

function rawService(index: number, { resourceVersion = '1', policy = 'Cluster' } = {}): Record<string, unknown> {
  return {
    metadata: { uid: `u${index}`, namespace: 'shop', name: `web-${index}`, resourceVersion },
    spec: {
      type: 'LoadBalancer',
      ports: [{ port: 443 }],
      loadBalancerSourceRanges: [...RANGES],
      externalTrafficPolicy: policy,
    },
  };
}

test('parses the settings of each Service in a turn of its own when parsing takes long', async () => {
  const services = Array.from({ length: 20 }, (_, index) => parseService(rawService(index)).object).filter(
    (service) => service !== undefined,
  );
  let turns = 0;
  const count = (): void => {
    turns += 1;
    timer = setImmediate(count);
  };
  let timer = setImmediate(count);
  let now = 0;
  await parseSettingsInTurns(services, { monotonic: () => (now += 6) });
  clearImmediate(timer);
  assert.ok(turns >= 9, `${turns} turns of the event loop for 20 Services`);
});

test('parses source ranges once while they do not change', () => {
  let parses = 0;
  const parse = (raw: unknown): ReturnType<typeof parseService> => {
    parses += 1;
    return parseService(raw);
  };
  const { cache } = createKindWatch<'Service'>(
    { ...WATCHED_KINDS.Service, parse },
    { clock: systemClock, onChange: () => undefined },
  );
  cache.listStarted();
  cache.put(rawService(1));
  cache.listCompleted();
  const first = cache.list()[0] ?? assert.fail('no Service');
  cache.put(rawService(1));
  assert.equal(parses, 1, 'the same version is not parsed again');
  cache.put(rawService(1, { resourceVersion: '2', policy: 'Local' }));
  const second = cache.list()[0] ?? assert.fail('no Service');
  assert.deepEqual([parses, second.externalTrafficPolicy], [2, 'Local']);
  assert.equal(second.sourceRanges, first.sourceRanges);
  const [before, after] = [serviceSettingsFor(first), serviceSettingsFor(second)];
  assert.ok(before.kind === 'settings' && after.kind === 'settings');
  assert.equal(before.settings.sourceRanges, after.settings.sourceRanges, 'the parsed ranges are the same list');
});
