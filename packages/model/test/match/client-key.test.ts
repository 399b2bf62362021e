import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientKeyFor } from '@weir/model';

test('an IPv4 address is one client, however it arrives', () => {
  assert.equal(clientKeyFor('192.0.2.7'), '192.0.2.7');
  assert.equal(clientKeyFor('::ffff:192.0.2.7'), '192.0.2.7');
});

test('all addresses of an IPv6 /64 are one client, those of the next are another', () => {
  assert.equal(clientKeyFor('2001:db8:0:7::1'), clientKeyFor('2001:db8::7:ffff:ffff:ffff:ffff'));
  assert.equal(clientKeyFor('2001:db8:0:7::1'), '2001:db8:0:7');
  assert.notEqual(clientKeyFor('2001:db8:0:7::1'), clientKeyFor('2001:db8:0:8::1'));
  assert.equal(clientKeyFor('::1'), '0:0:0:0');
  assert.equal(clientKeyFor('2001:db8::'), '2001:db8:0:0');
});

test('what is no address is a client of its own', () => {
  assert.equal(clientKeyFor(''), '');
  assert.equal(clientKeyFor('nonsense:'), 'nonsense:');
});
