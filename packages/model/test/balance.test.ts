import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createBalancer, DEFAULT_SERVICE_SETTINGS, type EndpointLoad, type ServiceSettings } from '@weir/model';
import fc from 'fast-check';

const SETTINGS: ServiceSettings = DEFAULT_SERVICE_SETTINGS;
const KINDS = {
  'least-connections': SETTINGS,
  'round-robin': { ...SETTINGS, algorithm: 'round-robin' },
  'client-ip': { ...SETTINGS, affinity: { kind: 'client-ip', timeoutMs: 1 } },
} as const satisfies Record<string, ServiceSettings>;

function loadsOf(count: number): EndpointLoad[] {
  return Array.from({ length: count }, (_, i) => ({ endpoint: { address: `10.0.0.${i}`, port: 80 }, active: 0 }));
}

/** mulberry32: a generator with a seed, so that a spread that fails fails again. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

for (const [name, settings] of Object.entries(KINDS)) {
  describe(name, () => {
    test('chooses one of the list, and nothing of an empty one', () => {
      fc.assert(
        fc.property(fc.integer(), fc.array(fc.nat(8), { minLength: 1, maxLength: 30 }), (seed, counts) => {
          const balancer = createBalancer(settings, randomFrom(seed));
          for (const count of counts) {
            const loads = loadsOf(count);
            const chosen = balancer.choose(loads, `192.0.2.${count}`);
            assert.equal(chosen === undefined, count === 0);
            assert.ok(chosen === undefined || loads.includes(chosen));
          }
        }),
      );
    });

    test('spreads many clients over all endpoints', () => {
      const balancer = createBalancer(settings, randomFrom(7));
      const loads = loadsOf(5);
      for (let i = 0; i < 5000; i++) {
        const chosen = balancer.choose(loads, `198.51.${i >> 8}.${i & 255}`);
        if (chosen) chosen.active += 1;
      }
      for (const { active } of loads) assert.ok(active > 850 && active < 1150, `${active} of 1000 expected`);
    });
  });
}

test('least-connections keeps the counts together where random would let them drift', () => {
  const balancer = createBalancer(KINDS['least-connections'], randomFrom(3));
  const loads = loadsOf(10);
  for (let i = 0; i < 10_000; i++) {
    const chosen = balancer.choose(loads, '');
    if (chosen) chosen.active += 1;
  }
  const counts = loads.map(({ active }) => active);
  assert.ok(Math.max(...counts) - Math.min(...counts) <= 8, counts.join(' '));
});

test('an idle endpoint is preferred to a busy one whenever both are drawn', () => {
  const balancer = createBalancer(KINDS['least-connections'], randomFrom(1));
  const loads = loadsOf(2);
  const [busy, idle] = loads;
  if (busy) busy.active = 5;
  for (let i = 0; i < 100; i++) assert.equal(balancer.choose(loads, ''), idle);
});

test('client-ip moves only the clients of an endpoint that goes', () => {
  const balancer = createBalancer(KINDS['client-ip'], Math.random);
  const loads = loadsOf(6);
  const gone = loads[2];
  for (let i = 0; i < 2000; i++) {
    const client = `203.0.${i >> 8}.${i & 255}`;
    const before = balancer.choose(loads, client);
    const after = balancer.choose(
      loads.filter((load) => load !== gone),
      client,
    );
    if (before !== gone) assert.equal(after, before);
  }
});
