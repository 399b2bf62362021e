import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '../../src/memory/memory-store.ts';
import { followProperties } from '../contract/follow-properties.ts';
import { leasesProperties } from '../contract/leases-properties.ts';
import { storeContract } from '../contract/store-contract.ts';
import type { StoreFixture, StoreFixtureOptions } from '../contract/store-fixture.ts';
import { usageProperties } from '../contract/usage-properties.ts';

const memory = { name: 'memory', open: async (options: StoreFixtureOptions = {}) => memoryFixture(options) };
storeContract(memory);
usageProperties(memory, { numRuns: 200 });
leasesProperties(memory, { numRuns: 500 });
followProperties(memory, { numRuns: 200 });

function memoryFixture(options: StoreFixtureOptions): StoreFixture {
  const clock = new ManualClock(Date.now());
  const store = new MemoryStore({ clock, ...options });
  return {
    clock,
    connect: async () => store,
    goAway: async () => store.faults.goAway(),
    comeBack: async () => store.faults.comeBack(),
    wipe: async () => store.faults.wipe(),
    checkpoint: async () => {
      const rollBack = store.faults.checkpoint();
      return async () => rollBack();
    },
    eventually: async (ms, assertion) => {
      await clock.advance(ms);
      await assertion();
    },
    passLeaseTime: async (ms) => (ms < 0 ? clock.jumpWallClock(ms) : clock.advance(ms)),
    [Symbol.asyncDispose]: () => store.close(),
  };
}
