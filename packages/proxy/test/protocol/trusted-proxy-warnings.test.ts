import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trustedProxyWarnings } from '../../src/protocol/trusted-proxy-warnings.ts';

test('to trust everybody as a load balancer is told, of each family', () => {
  const told = trustedProxyWarnings(['192.0.2.0/24', '0.0.0.0/0', '::/0']);
  assert.deepEqual(
    told.map((advice) => /^every client in (\S+) is trusted .* can claim any address/.exec(advice)?.[1]),
    ['0.0.0.0/0', '::/0'],
  );
});

test('to trust some, or nobody, is nothing to tell', () => {
  assert.deepEqual(trustedProxyWarnings(['192.0.2.0/24', '10.0.0.0/8', '2001:db8::/32']), []);
  assert.deepEqual(trustedProxyWarnings(undefined), []);
});
