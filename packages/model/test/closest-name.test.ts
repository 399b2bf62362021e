import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { closestName } from '@weir/model';

const FIELDS = ['loadBalancerSourceRanges', 'loadBalancerClass', 'loadBalancerIP', 'ports', 'type', 'selector'];

describe('the closest name', () => {
  for (const [name, expected] of [
    ['loadBalancerSourceRange', 'loadBalancerSourceRanges'],
    ['loadbalancerclass', 'loadBalancerClass'],
    ['sourceRanges', 'loadBalancerSourceRanges'],
    ['prots', 'ports'],
    ['port', 'ports'],
    ['balancer', undefined],
    ['hosts', undefined],
    ['replicas', undefined],
    ['', undefined],
    ['p'.repeat(200_000), undefined],
  ] as const) {
    test(`of ${JSON.stringify(name.slice(0, 30))} is ${expected}`, () => {
      assert.equal(closestName(name, FIELDS), expected);
    });
  }
});
