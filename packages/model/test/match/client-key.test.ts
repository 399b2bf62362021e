import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientKeyFor } from '@weir/model';

test('counts an IPv4 address as one client in every form', () => {
  assert.equal(clientKeyFor('192.0.2.7'), '192.0.2.7');
  assert.equal(clientKeyFor('::ffff:192.0.2.7'), '192.0.2.7');
});

test('counts all addresses of an IPv6 /64 as one client', () => {
  assert.equal(clientKeyFor('2001:db8:0:7::1'), clientKeyFor('2001:db8::7:ffff:ffff:ffff:ffff'));
  assert.equal(clientKeyFor('2001:db8:0:7::1'), '2001:db8:0:7');
  assert.notEqual(clientKeyFor('2001:db8:0:7::1'), clientKeyFor('2001:db8:0:8::1'));
  assert.equal(clientKeyFor('::1'), '0:0:0:0');
  assert.equal(clientKeyFor('2001:db8::'), '2001:db8:0:0');
});

test('counts a text that is not an address as a separate client', () => {
  assert.equal(clientKeyFor(''), '');
  assert.equal(clientKeyFor('nonsense:'), 'nonsense:');
});
