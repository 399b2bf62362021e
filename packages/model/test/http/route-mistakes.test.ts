import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type HttpFilter, type HttpRoute, httpRouteMistakes, type RedirectFilter } from '@weir/model';
import { exactMatch, httpRoute, prefixMatch } from '../fixtures/http-routes.ts';

const REDIRECT: RedirectFilter = { kind: 'redirect', scheme: 'https', host: null, port: null, path: null, status: 301 };
const headers = (part: Partial<Record<'set' | 'add' | 'remove', unknown>>): HttpFilter =>
  ({ kind: 'request-headers', set: [], add: [], remove: [], ...part }) as HttpFilter;
const repeat = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => item(i));
const backend = (service: string, weight = 1): HttpRoute['backends'][number] => ({ service, port: 80, weight });

const VALID: readonly (readonly [name: string, route: Partial<HttpRoute>])[] = [
  ['without conditions', {}],
  ['with hosts', { hosts: ['a.example', '*.example'] }],
  [
    'at every limit',
    { hosts: repeat(100, (i) => `h${i}.example`), backends: repeat(64, (i) => backend(`${i}`, 1_000_000)) },
  ],
  [
    'with matches',
    { matches: repeat(16, (i) => prefixMatch(i % 2 === 0 ? '/' : `/a;x/${i}/%C3%A4/`, { method: 'GET' })) },
  ],
  ['that redirects', { filters: [REDIRECT] }],
  ['whose backends have no weight', { backends: [backend('a', 0)] }],
  [
    'that replaces a prefix',
    {
      matches: [prefixMatch('/a')],
      filters: [
        { kind: 'rewrite', host: 'b.example', path: { kind: 'prefix', value: '/' } },
        headers({ remove: ['x'] }),
      ],
    },
  ],
  ['with timeouts', { timeouts: { requestMs: 1000, backendRequestMs: 1000 } }],
];

for (const [name, route] of VALID) {
  test(`finds no mistake in a route ${name}`, () => {
    assert.deepEqual(httpRouteMistakes(httpRoute('a', route)), []);
  });
}

const headerMatch = (name: string, value = '') => prefixMatch('/', { headers: [{ kind: 'exact', name, value }] });

const MISTAKES: readonly (readonly [route: Partial<HttpRoute>, mistake: string])[] = [
  [
    { hosts: ['A.example'] },
    'hosts: "A.example" is not a host name in lower case, such as "shop.example.com" or "*.example.com"',
  ],
  [{ hosts: ['*'] }, 'hosts: "*" is not a host name in lower case, such as "shop.example.com" or "*.example.com"'],
  [{ hosts: ['a.example', 'a.example'] }, 'hosts: each host may occur only once'],
  [{ hosts: repeat(101, (i) => `h${i}`) }, 'hosts has 101 items, and at most 100 are allowed'],
  [{ matches: repeat(17, () => prefixMatch('/')) }, 'matches has 17 items, and at most 16 are allowed'],
  [{ matches: [prefixMatch('')] }, 'matches[0].path "" must begin with "/"'],
  [{ matches: [prefixMatch('/'), exactMatch('*')] }, 'matches[1].path "*" must begin with "/"'],
  [{ matches: [prefixMatch('/a//b')] }, 'matches[0].path "/a//b" must not contain "//"'],
  [{ matches: [prefixMatch('/a?b')] }, 'matches[0].path "/a?b" must not contain "?"'],
  [{ matches: [prefixMatch('/a/../b')] }, 'matches[0].path "/a/../b" must be written in its normal form "/b"'],
  [{ matches: [prefixMatch('/%61')] }, 'matches[0].path "/%61" must be written in its normal form "/a"'],
  [{ matches: [prefixMatch('/a%2fb')] }, 'matches[0].path "/a%2fb" is not a valid path: encoded slash'],
  [{ matches: [exactMatch('/ä')] }, 'matches[0].path "/ä" is not a valid path: invalid character'],
  [
    { matches: [prefixMatch(`/${'a'.repeat(1024)}`)] },
    `matches[0].path "/${'a'.repeat(79)}…" must have at most 1024 characters`,
  ],
  [{ matches: [prefixMatch('/', { method: 'G T' })] }, 'matches[0].method "G T" is not a method, such as "GET"'],
  [{ matches: [prefixMatch('/', { method: '' })] }, 'matches[0].method "" is not a method, such as "GET"'],
  [{ matches: [headerMatch('X-A')] }, 'matches[0].headers: "X-A" is not the name of a header in lower case'],
  [{ matches: [headerMatch(':path')] }, 'matches[0].headers: ":path" is not the name of a header in lower case'],
  [
    { matches: [headerMatch('x', 'a\n')] },
    'matches[0].headers: the value "a\n" must have at most 4096 visible ASCII characters, with spaces only inside',
  ],
  [
    { matches: [prefixMatch('/', { query: [{ kind: 'present', name: '' }] })] },
    'matches[0].query: the name "" must have 1 to 256 characters',
  ],
  [
    { matches: [prefixMatch('/', { query: repeat(2, () => ({ kind: 'present', name: 'q' })) })] },
    'matches[0].query: each name may occur only once',
  ],
  [
    { matches: [prefixMatch('/', { headers: repeat(17, (i) => ({ kind: 'present', name: `x${i}` })) })] },
    'matches[0].headers has 17 items, and at most 16 are allowed',
  ],
  [{ filters: repeat(17, () => headers({})) }, 'filters has 17 items, and at most 16 are allowed'],
  [
    { filters: [headers({ remove: repeat(17, (i) => `x${i}`) })] },
    'filters[0] has 17 items, and at most 16 are allowed',
  ],
  [{ filters: [headers({ remove: ['Host'] })] }, 'filters[0]: "Host" is not the name of a header in lower case'],
  [
    { filters: [headers({ set: [{ name: 'host', value: 'b' }] })] },
    'filters[0]: no filter may change the header "host"',
  ],
  [
    { filters: [headers({ add: [{ name: 'transfer-encoding', value: 'chunked' }] })] },
    'filters[0]: no filter may change the header "transfer-encoding"',
  ],
  [
    { filters: [headers({ add: [{ name: 'x', value: 'a\r\nb: c' }] })] },
    'filters[0]: the value "a\r\nb: c" must have at most 4096 visible ASCII characters, with spaces only inside',
  ],
  [
    { filters: [headers({ add: [{ name: 'x', value: 'a' }], remove: ['x'] })] },
    'filters[0]: each name may occur only once',
  ],
  [{ filters: [{ ...REDIRECT, status: 300 as 301 }] }, 'filters[0].status 300 must be one of 301, 302, 303, 307, 308'],
  [{ filters: [{ ...REDIRECT, port: 0 }] }, 'filters[0].port 0 must be from 1 to 65535'],
  [
    { filters: [{ ...REDIRECT, host: '*.example' }] },
    'filters[0].host "*.example" is not a host name in lower case, such as "shop.example.com"',
  ],
  [{ filters: [{ ...REDIRECT, path: { kind: 'full', value: '//b' } }] }, 'filters[0].path "//b" must not contain "//"'],
  [
    { filters: [REDIRECT, { kind: 'rewrite', host: null, path: null }] },
    'filters: a route may have one redirect or one rewrite, not both or several',
  ],
  [
    { matches: [exactMatch('/a')], filters: [{ kind: 'rewrite', host: null, path: { kind: 'prefix', value: '/' } }] },
    'filters: a prefix can be replaced only if all matches have a path of kind "prefix"',
  ],
  [{ backends: [] }, 'backends: name at least one backend; the requests of a redirect count for its backends too'],
  [{ backends: repeat(65, (i) => backend(`${i}`)) }, 'backends has 65 items, and at most 64 are allowed'],
  [{ backends: [backend('a'), backend('a')] }, 'backends: each port of a Service may occur only once'],
  [{ backends: [backend('a', -1)] }, 'backends[0].weight -1 must be a whole number from 0 to 1000000'],
  [{ backends: [backend('a', 0.5)] }, 'backends[0].weight 0.5 must be a whole number from 0 to 1000000'],
  [{ backends: [backend('a', 1_000_001)] }, 'backends[0].weight 1000001 must be a whole number from 0 to 1000000'],
  [{ backends: [{ service: 'a', port: 70_000, weight: 1 }] }, 'backends[0].port 70000 must be from 1 to 65535'],
  [{ timeouts: { requestMs: 0, backendRequestMs: null } }, 'timeouts.requestMs 0 must be from 1 ms to 24 hours'],
  [
    { timeouts: { requestMs: 10, backendRequestMs: 11 } },
    'timeouts.backendRequestMs must not be longer than timeouts.requestMs',
  ],
];

for (const [route, mistake] of MISTAKES) {
  test(`reports ${JSON.stringify(mistake).slice(0, 90)}`, () => {
    assert.deepEqual(httpRouteMistakes(httpRoute('a', route)), [mistake]);
  });
}
