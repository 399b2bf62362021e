import { ManualClock } from '@weir/runtime';
import { createMemoryStore } from '../../src/memory/memory-store.ts';
import { followLaw } from '../contract/follow-law.ts';
import { storeContract } from '../contract/store-contract.ts';
import type { World, WorldOptions } from '../contract/subject.ts';
import { usageLaw } from '../contract/usage-law.ts';

const memory = { name: 'memory', open: async (options: WorldOptions = {}) => memoryWorld(options) };
storeContract(memory);
usageLaw(memory, { numRuns: 200 });
followLaw(memory, { numRuns: 200 });

function memoryWorld(options: WorldOptions): World {
  const clock = new ManualClock(Date.now());
  const store = createMemoryStore({ clock, ...options });
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
    after: async (ms, assertion) => {
      await clock.advance(ms);
      await assertion();
    },
    [Symbol.asyncDispose]: () => store.close(),
  };
}
