import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createEndpointStats, type EndpointStats } from '@weir/model/data-plane';
import fc from 'fast-check';
import type { EndpointCookie } from '../../../src/http/passes/endpoint-cookie.ts';
import type { RequestContext } from '../../../src/http/passes/request-context.ts';
import { StickyCookie } from '../../../src/http/sticky-cookie.ts';
import { headBytes, headLines, parseRequest, requestContext, writeRequest } from './heads.ts';

const ENDPOINT: EndpointStats = createEndpointStats({ address: '10.0.0.1', port: 80 });
const OTHER: EndpointStats = createEndpointStats({ address: '10.0.0.2', port: 80 });
const TEST_COOKIE: EndpointCookie = {
  name: Buffer.from('weir'),
  endpointOf(bytes, start, end) {
    const value = Buffer.from(bytes).toString('latin1', start, end);
    return value === 'one' ? ENDPOINT : value === 'two' ? OTHER : undefined;
  },
};

/** Returns the Cookie lines that the endpoint gets, and the endpoint that the cookies name. */
function forward(
  cookies: readonly string[],
  options: Partial<RequestContext> = { endpointCookie: TEST_COOKIE },
): { lines: readonly string[]; endpoint: EndpointStats | undefined } {
  const fields = cookies.map((value) => `Cookie: ${value}`);
  const context = requestContext(parseRequest(headBytes(['GET / HTTP/1.1', 'Host: a', ...fields])), options);
  const lines = headLines(writeRequest(context) as Uint8Array);
  return { lines: lines.filter((line) => /^cookie:/i.test(line)), endpoint: context.cookieEndpoint };
}

for (const { cookies, lines, endpoint } of [
  { cookies: ['weir=one'], lines: [], endpoint: ENDPOINT },
  { cookies: ['a=b; weir=one; c=d'], lines: ['Cookie: a=b; c=d'], endpoint: ENDPOINT },
  { cookies: ['weir=one; a=b'], lines: ['Cookie: a=b'], endpoint: ENDPOINT },
  { cookies: ['a=b;weir=two'], lines: ['Cookie: a=b'], endpoint: OTHER },
  { cookies: ['weir=wrong; weir=two; weir=one'], lines: [], endpoint: OTHER },
  { cookies: ['a=b', 'weir=one', 'c=d; weir=two'], lines: ['Cookie: a=b', 'Cookie: c=d'], endpoint: ENDPOINT },
  { cookies: ['weir=wrong'], lines: [], endpoint: undefined },
  { cookies: ['weir='], lines: [], endpoint: undefined },
  { cookies: ['Weir=one; xweir=one; weirx=one; weir'], lines: ['Cookie: Weir=one; xweir=one; weirx=one; weir'] },
  { cookies: ['a="x; weir=one'], lines: ['Cookie: a="x'], endpoint: ENDPOINT },
  { cookies: ['\ta=b ;\t weir=one ; ;; c'], lines: ['Cookie: a=b; c'], endpoint: ENDPOINT },
  { cookies: [''], lines: ['Cookie: '] },
]) {
  test(`hides the sticky cookie of ${JSON.stringify(cookies)}`, () => {
    const forwarded = forward(cookies);
    assert.deepEqual([...forwarded.lines].sort(), [...lines].sort());
    assert.equal(forwarded.endpoint, endpoint);
  });
}

test('relays all cookies if the Service has no sticky cookie', () => {
  assert.deepEqual(forward(['weir=one'], {}).lines, ['Cookie: weir=one']);
});

test('never relays the sticky cookie, and keeps all other cookies in their order', () => {
  const pair = fc.tuple(fc.constantFrom('weir', 'a', 'weirs', 'WEIR'), fc.constantFrom('one', 'two', '', 'x=y', '"'));
  fc.assert(
    fc.property(fc.array(fc.array(pair, { minLength: 1, maxLength: 6 }), { maxLength: 4 }), (fields) => {
      const { lines, endpoint } = forward(fields.map((pairs) => pairs.map((one) => one.join('=')).join('; ')));
      const relayed = lines.flatMap((line) => line.slice('Cookie: '.length).split('; ')).sort();
      const others = fields.flat().filter(([name]) => name !== 'weir');
      assert.deepEqual(relayed, others.map((one) => one.join('=')).sort());
      const values = fields.flat().flatMap(([name, value]) => (name === 'weir' ? [value] : []));
      const first = values.find((value) => value === 'one' || value === 'two');
      assert.equal(endpoint, first === 'one' ? ENDPOINT : first === 'two' ? OTHER : undefined);
    }),
  );
});

const KEY = Buffer.alloc(32, 1);
const stickyCookie = (over: { key?: Uint8Array; service?: string; endpoints?: EndpointStats[] } = {}): StickyCookie => {
  const { key = KEY, service = 'uid', endpoints = [ENDPOINT, OTHER] } = over;
  const cookie = new StickyCookie('weir', { key, service });
  cookie.setEndpoints(endpoints);
  return cookie;
};
const valueIn = (line: Uint8Array | undefined): Buffer =>
  Buffer.from(/^Set-Cookie: weir=([\w-]{22}); /.exec(Buffer.from(line ?? '').toString())?.[1] ?? '');
const endpointOf = (cookie: StickyCookie, value: Buffer): EndpointStats | undefined =>
  cookie.endpointOf(value, 0, value.length);

test('the value of a sticky cookie names the same endpoint in every worker with the key', () => {
  const line = stickyCookie().lineFor(ENDPOINT, { isHttps: true });
  assert.match(Buffer.from(line ?? '').toString(), /; Path=\/; HttpOnly; Secure; SameSite=Lax\r\n$/);
  const value = valueIn(line);
  assert.equal(value.length, 22);
  assert.equal(endpointOf(stickyCookie(), value), ENDPOINT);
  const plain = Buffer.from(stickyCookie().lineFor(ENDPOINT, { isHttps: false }) ?? '').toString();
  assert.equal(plain, `Set-Cookie: weir=${value}; Path=/; HttpOnly\r\n`);
});

test('the value of a sticky cookie names no endpoint of another Service, with another key, or that has left', () => {
  const value = valueIn(stickyCookie().lineFor(ENDPOINT, { isHttps: false }));
  assert.equal(endpointOf(stickyCookie({ service: 'uid-2' }), value), undefined);
  assert.equal(endpointOf(stickyCookie({ key: Buffer.alloc(32, 2) }), value), undefined);
  assert.equal(endpointOf(stickyCookie({ endpoints: [OTHER] }), value), undefined);
  assert.equal(stickyCookie({ endpoints: [OTHER] }).lineFor(ENDPOINT, { isHttps: false }), undefined);
  for (let at = 0; at < value.length; at += 1) {
    const forged = Buffer.from(value);
    forged[at] = (forged[at] as number) ^ 1;
    assert.equal(endpointOf(stickyCookie(), forged), undefined);
  }
  assert.equal(endpointOf(stickyCookie(), value.subarray(1)), undefined);
});

test('gives values to at most 10,000 endpoints of a Service', () => {
  const endpoints = Array.from({ length: 10_001 }, (_, index) =>
    createEndpointStats({ address: `10.1.${index >> 8}.${index & 255}`, port: 80 }),
  );
  const cookie = stickyCookie({ endpoints });
  const hasLine = (stats: EndpointStats | undefined): boolean =>
    stats !== undefined && cookie.lineFor(stats, { isHttps: false }) !== undefined;
  assert.deepEqual([hasLine(endpoints[9_999]), hasLine(endpoints[10_000])], [true, false]);
});
