import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseEndpointSlice } from '../../src/parse/endpoint-slice.ts';

const metadata = { uid: 'u1', namespace: 'shop', name: 'web' };

describe('an EndpointSlice', () => {
  const labels = { 'kubernetes.io/service-name': 'web' };
  const slice = (more: object): object => ({ metadata: { ...metadata, labels }, addressType: 'IPv4', ...more });

  test('reads absent conditions as Kubernetes does', () => {
    const endpoints = [{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.2'], conditions: { ready: false } }];
    const { object } = parseEndpointSlice(slice({ endpoints, ports: [{ port: 8080, name: '' }] }));
    assert.deepEqual(object?.endpoints, [
      { addresses: ['10.0.0.1'], zone: null, ready: true, serving: true, terminating: false },
      { addresses: ['10.0.0.2'], zone: null, ready: false, serving: false, terminating: false },
    ]);
    assert.deepEqual(object?.ports, [{ name: null, port: 8080, protocol: 'TCP' }]);
    assert.equal(object?.serviceName, 'web');
  });

  test('keeps the zones of its endpoints, and reads an empty zone as none', () => {
    const { object } = parseEndpointSlice(
      slice({
        endpoints: [
          { addresses: ['10.0.0.1'], zone: 'eu-1a' },
          { addresses: ['10.0.0.2'], zone: '' },
        ],
      }),
    );
    assert.deepEqual(
      object?.endpoints.map(({ zone }) => zone),
      ['eu-1a', null],
    );
  });

  test('ignores zones that are too long for a label, with one warning for all of them', () => {
    const long = 'z'.repeat(64);
    const hints = { forZones: [{ name: long }, { name: 'eu-1b' }] };
    const endpoints = [
      { addresses: ['10.0.0.1'], zone: 'z'.repeat(1_000_000) },
      { addresses: ['10.0.0.2'], zone: long, hints },
    ];
    const { object, problems } = parseEndpointSlice(slice({ endpoints }));
    assert.deepEqual(
      object?.endpoints.map(({ zone, hintedZones }) => [zone, hintedZones]),
      [
        [null, undefined],
        [null, ['eu-1b']],
      ],
    );
    assert.deepEqual(
      problems.map(({ severity, subject, message }) => [severity, subject, message]),
      [
        [
          'warning',
          'EndpointSlice shop/web',
          'zones of endpoints and hints with more than 63 characters are ignored (3 in this slice), because no node can have such a zone; use the zones of the nodes (label topology.kubernetes.io/zone)',
        ],
      ],
    );
  });

  test('keeps the hinted zones of an endpoint', () => {
    const forZones = [{ name: 'eu-1b' }, { name: 'eu-1c' }, { name: 'eu-1b' }];
    const endpoints = [
      { addresses: ['10.0.0.1'], zone: 'eu-1a', hints: { forZones } },
      { addresses: ['10.0.0.2'], zone: 'eu-1a', hints: { forZones: [] } },
      { addresses: ['10.0.0.3'], zone: 'eu-1a', hints: { forNodes: [{ name: 'n1' }] } },
    ];
    assert.deepEqual(
      parseEndpointSlice(slice({ endpoints })).object?.endpoints.map(({ zone, hintedZones }) => [zone, hintedZones]),
      [
        ['eu-1a', ['eu-1b', 'eu-1c']],
        ['eu-1a', undefined],
        ['eu-1a', undefined],
      ],
    );
  });

  test('without a Service name is a warning and no object', () => {
    const result = parseEndpointSlice({ metadata, addressType: 'IPv4', endpoints: [] });
    assert.equal(result.object, undefined);
    assert.deepEqual(
      result.problems.map((each) => each.severity),
      ['warning'],
    );
  });

  test('refuses addresses of another address type', () => {
    const result = parseEndpointSlice(slice({ endpoints: [{ addresses: ['fd00::1'] }, {}] }));
    assert.deepEqual(
      result.problems.map(({ message }) => message),
      [
        'endpoints[0].addresses[0] is "fd00::1"; use an IPv4 address',
        'endpoints[1].addresses is missing; use a list of addresses',
      ],
    );
  });
});
