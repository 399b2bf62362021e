import assert from 'node:assert/strict';
import { test } from 'node:test';
import { trustedProxyWarnings } from '../../src/protocol/trusted-proxy-warnings.ts';

test('warns about each network that trusts all clients as load balancers', () => {
  const warnings = trustedProxyWarnings({ trustProxyProtocol: ['192.0.2.0/24', '0.0.0.0/0', '::/0'] });
  assert.deepEqual(
    warnings.map((warning) => /^(\S+) trusts every client .* can forge their address/.exec(warning)?.[1]),
    ['0.0.0.0/0', '::/0'],
  );
});

test('does not warn about narrower networks, or without any network', () => {
  assert.deepEqual(
    trustedProxyWarnings({ trustProxyProtocol: ['192.0.2.0/24', '10.0.0.0/8'], trustForwarded: ['2001:db8::/32'] }),
    [],
  );
  assert.deepEqual(trustedProxyWarnings({}), []);
});

test('warns about each network whose X-Forwarded-* fields are trusted although it contains all clients', () => {
  const warnings = trustedProxyWarnings({ trustForwarded: ['192.0.2.0/24', '::/0'] });
  assert.deepEqual(
    warnings.map((warning) => /^(\S+) trusts the X-Forwarded-\* fields of every client/.exec(warning)?.[1]),
    ['::/0'],
  );
});
