import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeEntry, encodeEntry, type TenantEntry } from '@weir/model';

const TENANT: TenantEntry = {
  kind: 'tenant',
  id: 'tenant/shop',
  name: 'shop',
  policy: 'shop',
  namespaces: ['shop'],
  limits: {},
  policyLimits: {},
  rules: [],
  used: { services: 0, ports: 0 },
};

test('decodes what it has encoded, and rejects a tenant whose limits or rules have the wrong type', () => {
  assert.deepEqual(decodeEntry(encodeEntry(TENANT)), TENANT);
  for (const over of [{ limits: null }, { policyLimits: 5 }, { rules: {} }, { rules: [7] }]) {
    const entry = { ...TENANT, ...over } as unknown as TenantEntry;
    assert.equal(decodeEntry(encodeEntry(entry)), undefined, JSON.stringify(over));
  }
});
