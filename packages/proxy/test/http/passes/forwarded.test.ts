import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { ForwardedPeer } from '../../../src/http/passes/forwarded.ts';
import { forwardRequest, headBytes, PEER, parseRequest, requestContext, writeRequest } from './heads.ts';

const LINE = 'GET /a?b=c HTTP/1.1';
const HOST = 'Host: shop.example';
const IDS = [
  'Via: 1.1 weir',
  'X-Request-Id: 01010101010101010101010101010101',
  'traceparent: 00-01010101010101010101010101010101-0202020202020202-01',
];
const ADDED = [
  'X-Forwarded-For: 192.0.2.7',
  'X-Forwarded-Proto: https',
  'X-Forwarded-Port: 443',
  'X-Forwarded-Host: shop.example',
  ...IDS,
];
const TRUSTED = { peer: new ForwardedPeer({ ...PEER, isTrusted: true }) };

describe('X-Forwarded-* and Forwarded', () => {
  const forged = [
    'X-Forwarded-For: 10.0.0.1',
    'x-forwarded-for: 10.0.0.2',
    'X-Forwarded-Proto: http',
    'X-Forwarded-Host: bank.example',
    'X-Forwarded-Port: 1',
    'Forwarded: for=10.0.0.1',
  ];

  test('the fields of an untrusted client are replaced', () => {
    assert.deepEqual(forwardRequest([LINE, HOST, ...forged]), [LINE, HOST, ...ADDED]);
  });

  test('a trusted peer is appended to X-Forwarded-For, and its other fields are kept', () => {
    assert.deepEqual(forwardRequest([LINE, HOST, ...forged], TRUSTED), [
      LINE,
      HOST,
      ...forged.slice(2),
      'X-Forwarded-For: 10.0.0.1, 10.0.0.2, 192.0.2.7',
      ...IDS,
    ]);
  });

  test('the fields that a trusted peer left out are added', () => {
    assert.deepEqual(forwardRequest([LINE, HOST], TRUSTED), [LINE, HOST, ...ADDED]);
  });

  test('the port of this listener is not added to the scheme of a trusted peer', () => {
    const lines = forwardRequest([LINE, HOST, 'X-Forwarded-Proto: http'], TRUSTED);
    assert.ok(!lines.some((line) => line.startsWith('X-Forwarded-Port')));
  });

  test('the client uses HTTPS if a trusted peer says so, or if the connection of the peer uses TLS', () => {
    const isHttps = (lines: readonly string[], isTrusted: boolean, isTls: boolean): boolean => {
      const peer = new ForwardedPeer({ ...PEER, isTrusted, isTls });
      const context = requestContext(parseRequest(headBytes([LINE, HOST, ...lines])), { peer });
      writeRequest(context);
      return context.isHttps;
    };
    for (const isTls of [false, true]) {
      for (const lines of [[], ['X-Forwarded-Proto: http'], ['X-Forwarded-Proto: https']])
        assert.equal(isHttps(lines, false, isTls), isTls);
      assert.equal(isHttps([], true, isTls), isTls);
      assert.equal(isHttps(['X-Forwarded-Proto: HTTPS'], true, isTls), true);
      for (const value of ['http', '', 'https, http', 'https,https'])
        assert.equal(isHttps([`X-Forwarded-Proto: ${value}`], true, isTls), false);
      assert.equal(isHttps(['X-Forwarded-Proto: https', 'X-Forwarded-Proto: https'], true, isTls), false);
    }
  });

  test('Forwarded is written if the operator asks for the field', () => {
    const forwarded = (fields: string[], peer: Partial<typeof PEER>): string | undefined =>
      forwardRequest([LINE, 'Host: shop.example:81', ...fields], {
        peer: new ForwardedPeer({ ...PEER, writesForwarded: true, ...peer }),
      }).find((line) => line.startsWith('Forwarded'));
    const received = ['Forwarded: for=10.0.0.1', 'Forwarded: for=10.0.0.2;by=_x'];
    assert.equal(forwarded(received, {}), 'Forwarded: for=192.0.2.7;proto=https;host="shop.example:81"');
    assert.equal(
      forwarded(received, { isTrusted: true, address: '2001:db8::1', isTls: false }),
      'Forwarded: for=10.0.0.1, for=10.0.0.2;by=_x, for="[2001:db8::1]";proto=http;host="shop.example:81"',
    );
  });

  test('a request without a host gets no X-Forwarded-Host', () => {
    assert.ok(!forwardRequest(['GET / HTTP/1.0']).some((line) => line.startsWith('X-Forwarded-Host')));
  });
});
