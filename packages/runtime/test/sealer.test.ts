import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sealer, Secret } from '@weir/runtime';
import fc from 'fast-check';

const sealer = new Sealer(new Secret('a secret of this fleet, long enough'));

test('opens a sealed text only with the same secret and the same context', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, context) => {
      const other = new Sealer(new Secret('a secret of this fleet, long enough'));
      const sealed = sealer.seal(text, context);
      assert.equal(other.open(sealed, context), Buffer.from(text).toString());
      assert.equal(other.open(sealed, `${context}.`), undefined);
    }),
  );
});

test('seals the same text with the same context identically, and uses a nonce for one text only', () => {
  assert.equal(sealer.seal('key', 'a'), sealer.seal('key', 'a'));
  const all = [sealer.seal('key', 'a'), sealer.seal('key', 'b'), sealer.seal('yek', 'a'), sealer.seal('ey', 'ak')];
  assert.equal(new Set(all).size, all.length);
  assert.equal(new Set(all.map((sealed) => sealed.slice(0, 18))).size, all.length, 'each nonce is unique');
});

test('does not open a text that was sealed with another secret', () => {
  const otherFleet = new Sealer(new Secret('the secret of another fleet, as long'));
  assert.equal(otherFleet.open(sealer.seal('key', 'a'), 'a'), undefined);
});

test('does not open damaged, truncated or unsealed texts', () => {
  const sealed = sealer.seal('key', 'a');
  const bytes = Buffer.from(sealed.slice(2), 'base64url');
  for (let index = 0; index < bytes.length; index += 1) {
    const damaged = Buffer.from(bytes);
    damaged[index] = (damaged[index] ?? 0) ^ 1;
    assert.equal(sealer.open(`1.${damaged.toString('base64url')}`, 'a'), undefined);
    assert.equal(sealer.open(`1.${bytes.subarray(0, index).toString('base64url')}`, 'a'), undefined);
  }
  for (const text of ['', '1.', 'key', `2.${sealed.slice(2)}`, '1.ÿ\0'])
    assert.equal(sealer.open(text, 'a'), undefined);
});

test('derives the same key material in all processes of a fleet, and different material per purpose', () => {
  const again = new Sealer(new Secret('a secret of this fleet, long enough'));
  assert.deepEqual(sealer.derive('tickets', 48), again.derive('tickets', 48));
  assert.equal(sealer.derive('tickets', 48).length, 48);
  assert.notDeepEqual(sealer.derive('tickets', 48), sealer.derive('tickets 2', 48));
});
