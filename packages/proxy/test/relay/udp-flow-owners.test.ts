import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { createFlowOwnersMemory, FlowOwners, hashOfFlow, removeFlowOwner } from '../../src/relay/udp-flow-owners.ts';

describe('FlowOwners', () => {
  test('peers find the owner of a flow until the owner releases it', () => {
    const memory = createFlowOwnersMemory();
    const [first, second] = [new FlowOwners(memory, 1), new FlowOwners(memory, 2)];
    const flow = hashOfFlow(7, { address: '192.0.2.1', port: 5_353 });
    assert.equal(second.ownerOf(flow), 0);
    first.claim(flow);
    assert.deepEqual([first.ownerOf(flow), second.ownerOf(flow)], [0, 1]);
    second.release(flow);
    assert.equal(second.ownerOf(flow), 1);
    first.release(flow);
    assert.equal(second.ownerOf(flow), 0);
  });

  test('a flow has no owner after its worker has ended, even if a later worker has the same low bits', () => {
    const memory = createFlowOwnersMemory();
    const flow = 12_345;
    new FlowOwners(memory, 1).claim(flow);
    const other = new FlowOwners(memory, 2);
    removeFlowOwner(memory, 1);
    assert.equal(other.ownerOf(flow), 0);
    new FlowOwners(memory, 1 + 256);
    assert.equal(other.ownerOf(flow), 0);
  });

  test('the last worker that claims a flow is its owner', () => {
    const memory = createFlowOwnersMemory();
    const owners = [1, 2, 3].map((worker) => new FlowOwners(memory, worker));
    for (const each of owners.slice(0, 2)) each.claim(99);
    assert.equal(owners[2]?.ownerOf(99), 2);
  });

  test('the owner of a flow is a live worker that has claimed it, and only full buckets forget a flow', () => {
    const flow = fc.integer({ min: 0, max: 40 }).map((index) => index * 2 ** 27 + (index % 3));
    const step = fc.record({
      kind: fc.constantFrom('claim' as const, 'claim' as const, 'release' as const, 'retire' as const),
      worker: fc.integer({ min: 1, max: 4 }),
      flow: flow.map((value) => value >>> 0),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const memory = createFlowOwnersMemory();
        const workers = [1, 2, 3, 4].map((worker) => new FlowOwners(memory, worker));
        const observer = new FlowOwners(memory, 5);
        const retired = new Set<number>();
        const claims = new Map<number, number>();
        for (const { kind, worker, flow: claimed } of steps) {
          if (retired.has(worker)) continue;
          if (kind === 'claim') {
            workers[worker - 1]?.claim(claimed);
            claims.set(claimed, worker);
          } else if (kind === 'release') {
            workers[worker - 1]?.release(claimed);
            if (claims.get(claimed) === worker) claims.delete(claimed);
          } else {
            removeFlowOwner(memory, worker);
            retired.add(worker);
            for (const [each, owner] of claims) if (owner === worker) claims.delete(each);
          }
        }
        const inBucket = Map.groupBy(claims.keys(), (each) => each % 16_384);
        for (const { flow: claimed } of steps) {
          const owner = observer.ownerOf(claimed);
          if (owner !== 0) assert.ok(!retired.has(owner));
          if (claims.has(claimed) && (inBucket.get(claimed % 16_384)?.length ?? 0) === 1 && steps.length <= 4) {
            assert.equal(owner, claims.get(claimed));
          }
        }
      }),
    );
  });
});
