import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ipv6Bytes } from '@weir/model';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';

const word = fc.oneof(fc.constant(0), fc.nat(0xffff));

test('ipv6Bytes returns the same bytes for every form of an address', () => {
  fc.assert(
    fc.property(fc.array(word, { minLength: 8, maxLength: 8 }), (words) => {
      const address = new ipaddr.IPv6(words);
      const bytes = Uint8Array.from(address.toByteArray());
      const full = words.map((word) => hex(word).padStart(4, '0')).join(':');
      const dotted = `${words.slice(0, 6).map(hex).join(':')}:${bytes.subarray(12).join('.')}`;
      const forms = [full, address.toNormalizedString(), address.toRFC5952String(), dotted];
      for (const text of [...forms, ...forms.map((form) => form.toUpperCase())])
        assert.deepEqual(ipv6Bytes(text), bytes);
    }),
  );
});

function hex(word: number): string {
  return word.toString(16);
}
