import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OPEN_GRANTS } from '@weir/model';
import { Quota } from '../../src/translate/quota.ts';
import { service } from '../build/snapshot.ts';

test('a thousand Services too many are refused for the price of one: the names of those that serve are listed once', () => {
  const quota = new Quota();
  let looks = 0;
  for (let index = 0; index < 1_000; index += 1) {
    const one = {
      ...service(`shop/s${index}`),
      get name(): string {
        looks += 1;
        return `s${index}`;
      },
    };
    quota.use('shop', one, 1);
  }
  const tenant = { name: 'shop', policy: null, namespaces: ['shop'], limits: { services: 1_000 }, grants: OPEN_GRANTS };
  looks = 0;
  const messages = new Set(Array.from({ length: 1_000 }, () => quota.refusalFor(tenant, 1)));
  assert.equal(messages.size, 1);
  assert.ok(looks <= 1_000, `${looks} names were looked at`);
  quota.drop('uid-shop-s0');
  assert.equal(quota.refusalFor(tenant, 1), undefined);
  quota.use('shop', service('shop/aaa'), 1);
  assert.match(quota.refusalFor(tenant, 1) ?? '', /\(aaa, /);
});
