import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientNetwork } from '@weir/model';

test('an IPv4 address is one client, however it arrives', () => {
  assert.equal(clientNetwork('192.0.2.7'), '192.0.2.7');
  assert.equal(clientNetwork('::ffff:192.0.2.7'), '192.0.2.7');
});

test('all addresses of an IPv6 /64 are one client, those of the next are another', () => {
  assert.equal(clientNetwork('2001:db8:0:7::1'), clientNetwork('2001:db8::7:ffff:ffff:ffff:ffff'));
  assert.equal(clientNetwork('2001:db8:0:7::1'), '2001:db8:0:7');
  assert.notEqual(clientNetwork('2001:db8:0:7::1'), clientNetwork('2001:db8:0:8::1'));
  assert.equal(clientNetwork('::1'), '0:0:0:0');
  assert.equal(clientNetwork('2001:db8::'), '2001:db8:0:0');
});

test('what is no address is a client of its own', () => {
  assert.equal(clientNetwork(''), '');
  assert.equal(clientNetwork('nonsense:'), 'nonsense:');
});
