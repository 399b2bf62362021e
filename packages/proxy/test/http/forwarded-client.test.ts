import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileNetworks } from '@weir/model';
import fc from 'fast-check';
import { forwardedClientOf } from '../../src/http/forwarded-client.ts';
import { headBytes, parseRequest } from './passes/heads.ts';

const TRUSTED = compileNetworks(['10.0.0.0/8', '2001:db8::/32']);
/** The number of hops that `forwardedClientOf` reads. */
const MAX_HOPS = 32;

const clientOf = (...values: string[]): string | undefined => {
  const lines = values.map((value) => `X-Forwarded-For: ${value}`);
  return forwardedClientOf(parseRequest(headBytes(['GET / HTTP/1.1', 'Host: a', ...lines])).fields, TRUSTED);
};

const cases: readonly { values: readonly string[]; client: string | undefined }[] = [
  { values: [], client: undefined },
  { values: [''], client: undefined },
  { values: ['192.0.2.1'], client: '192.0.2.1' },
  { values: ['192.0.2.1, 192.0.2.2'], client: '192.0.2.2' },
  { values: ['192.0.2.1,10.0.0.1 ,\t10.0.0.2'], client: '192.0.2.1' },
  { values: ['192.0.2.1', '10.0.0.1', '10.0.0.2'], client: '192.0.2.1' },
  { values: ['10.0.0.1, 10.0.0.2'], client: '10.0.0.1' },
  { values: ['unknown, 10.0.0.2'], client: '10.0.0.2' },
  { values: ['192.0.2.1, 10.0.0.1, '], client: undefined },
  { values: ['192.0.2.1, _hidden'], client: undefined },
  { values: ['192.0.2.1:4711'], client: '192.0.2.1' },
  { values: ['192.0.2.1:471100'], client: undefined },
  { values: ['192.0.2.1.5'], client: undefined },
  { values: ['2001:db9::1, 2001:db8::1'], client: '2001:db9::1' },
  { values: ['[2001:db9::1]:4711, [2001:db8::1]'], client: '2001:db9::1' },
  { values: ['fe80::1%eth0'], client: undefined },
  { values: ['"192.0.2.1"'], client: undefined },
  { values: [`${'192.0.2.1'.repeat(9)}`], client: undefined },
];
for (const { values, client } of cases) {
  test(`reads ${client ?? 'no address'} from ${JSON.stringify(values)}`, () => {
    assert.equal(clientOf(...values), client);
  });
}

test('reads a bounded number of addresses', () => {
  assert.equal(clientOf(['192.0.2.1', ...Array(MAX_HOPS - 1).fill('10.0.0.1')].join(', ')), '192.0.2.1');
  assert.equal(clientOf(['192.0.2.1', ...Array(MAX_HOPS).fill('10.0.0.1')].join(', ')), '10.0.0.1');
});

test('no client can influence the address that trusted proxies have appended', () => {
  const text = fc.string({ unit: fc.constantFrom(...'0123456789abf.:,[]% \t"x') });
  const forged = fc.array(fc.oneof(text, fc.ipV4(), fc.ipV6()), { maxLength: 5 });
  const untrusted = fc.oneof(fc.ipV4(), fc.ipV6()).filter((address) => !TRUSTED.contains(address));
  const proxies = fc.array(
    fc.nat(255).map((host) => `10.1.2.${host}`),
    { maxLength: MAX_HOPS - 1 },
  );
  fc.assert(
    fc.property(forged, untrusted, proxies, fc.boolean(), (values, client, hops, areLines) => {
      const appended = [client, ...hops];
      const received = areLines ? [...values, ...appended] : [[...values, ...appended].join(', ')];
      assert.equal(clientOf(...received.map((value) => value.trim())), client);
    }),
  );
});
