import { ManualClock } from '@weir/runtime';
import { createMemoryStore } from '../../src/memory/memory-store.ts';
import { storeContract } from '../contract/store-contract.ts';
import type { World } from '../contract/subject.ts';

storeContract({ name: 'memory', open: async () => memoryWorld() });

function memoryWorld(): World {
  const clock = new ManualClock(Date.now());
  const store = createMemoryStore({ clock });
  return {
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
