import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Sealer, Secret } from '@weir/runtime';
import fc from 'fast-check';

const sealer = new Sealer(new Secret('a secret of this fleet, long enough'));

test('what was sealed is opened by whoever has the secret, and only as what it is about', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (text, about) => {
      const other = new Sealer(new Secret('a secret of this fleet, long enough'));
      const sealed = sealer.seal(text, about);
      assert.equal(other.open(sealed, about), Buffer.from(text).toString());
      assert.equal(other.open(sealed, `${about}.`), undefined);
    }),
  );
});

test('the same text about the same thing is sealed the same way, and otherwise nothing is', () => {
  assert.equal(sealer.seal('key', 'a'), sealer.seal('key', 'a'));
  const all = [sealer.seal('key', 'a'), sealer.seal('key', 'b'), sealer.seal('yek', 'a'), sealer.seal('ey', 'ak')];
  assert.equal(new Set(all).size, all.length);
  assert.equal(new Set(all.map((sealed) => sealed.slice(0, 18))).size, all.length, 'no nonce is used twice');
});

test('another secret opens nothing', () => {
  const stranger = new Sealer(new Secret('the secret of another fleet, as long'));
  assert.equal(stranger.open(sealer.seal('key', 'a'), 'a'), undefined);
});

test('whatever is damaged, cut or no sealed text at all is not opened', () => {
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

test('material derived for one purpose is the same for all of a fleet, and tells nothing of that for another', () => {
  const again = new Sealer(new Secret('a secret of this fleet, long enough'));
  assert.deepEqual(sealer.derive('tickets', 48), again.derive('tickets', 48));
  assert.equal(sealer.derive('tickets', 48).length, 48);
  assert.notDeepEqual(sealer.derive('tickets', 48), sealer.derive('tickets 2', 48));
});
