import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countDescriptor,
  createDescriptorCountsMemory,
  DescriptorCounter,
  shareDescriptorCount,
} from '../../src/limits/descriptor-count.ts';
import { LimiterRegistry } from '../../src/limits/limiter-registry.ts';

test('asks a kernel that counts descriptors for the number', () => {
  let open = 40;
  const counter = new DescriptorCounter(createDescriptorCountsMemory(1), {
    count: () => open,
    list: () => assert.fail('the kernel has a count'),
  });
  assert.equal(counter.open, 40);
  open = 41;
  assert.equal(counter.open, 41);
});

test('reads the list of an older kernel once, and then adds what the workers have opened since', () => {
  const memory = createDescriptorCountsMemory(2);
  let lists = 0;
  const counter = new DescriptorCounter(memory, {
    count: () => 0,
    list: () => {
      lists += 1;
      return 40;
    },
  });
  for (const [workerSlot, count] of [3, 5].entries()) {
    shareDescriptorCount(memory, workerSlot);
    for (let opened = 0; opened < count; opened += 1) countDescriptor(1);
  }
  countDescriptor(-1);
  assert.deepEqual([counter.open, lists], [47, 1]);
});

test('a worker that starts later counts the descriptors of the other workers once', () => {
  const memory = createDescriptorCountsMemory(2);
  shareDescriptorCount(memory, 0);
  for (let opened = 0; opened < 100; opened += 1) countDescriptor(1);
  const counter = new DescriptorCounter(memory, { count: () => 0, list: () => 140 });
  assert.equal(counter.open, 140);
  countDescriptor(-1);
  assert.equal(counter.open, 139);
});

test('the descriptors of a worker that has ended no longer count', () => {
  const registry = new LimiterRegistry(1);
  const { memory, workerSlot } = registry.addWorker(1);
  const counter = new DescriptorCounter(memory.descriptorCounts, { count: () => 0, list: () => 40 });
  shareDescriptorCount(memory.descriptorCounts, workerSlot);
  countDescriptor(1);
  assert.equal(counter.open, 41);
  registry.removeWorker(1);
  assert.equal(counter.open, 40);
});
