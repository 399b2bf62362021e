import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  DEFAULT_SERVICE_SETTINGS,
  type LimitRefusals,
  limitRefusalMessage,
  minuteOf,
  type ServiceLimits,
  type TenantEntry,
  type TenantLimits,
  tableOf,
  usageNoticesFor,
} from '@weir/model';

const MINUTE = minuteOf(Date.UTC(2026, 10, 23, 16, 5));

function refusals(reason: LimitRefusals['reason']): LimitRefusals {
  return { service: 'uid', minute: MINUTE, reason, refused: 120, accepted: 880 };
}

test('the message names the limits that are set, and the clients of the minute', () => {
  const textOf = (reason: LimitRefusals['reason'], tenant: TenantLimits, service: Partial<ServiceLimits>): string => {
    const settings = { ...DEFAULT_SERVICE_SETTINGS, limits: { ...DEFAULT_SERVICE_SETTINGS.limits, ...service } };
    return limitRefusalMessage(refusals(reason), { service: { settings }, tenant: { policy: 'shop', limits: tenant } });
  };
  const limitIn = (text: string): string | undefined => /; the limit is (.*?); let clients/.exec(text)?.[1];
  assert.equal(
    textOf('rate-limit', { newConnectionsPerSecond: 200 }, {}),
    'limits refuse clients (rate-limit): in the minute 2026-11-23T16:05Z, 120 connections were refused and 880 accepted; the limit is newConnectionsPerSecond 200 in TenantPolicy "shop"; let clients open fewer connections, or ask for a higher limit',
  );
  assert.equal(
    limitIn(textOf('connection-limit', { connections: 5 }, { connections: 3 })),
    'connections 5 in TenantPolicy "shop" and weir.dev/max-connections 3',
  );
  assert.equal(
    limitIn(textOf('rate-limit', { newConnectionsPerSecond: 5 }, { newConnectionsPerSecond: 3 })),
    'newConnectionsPerSecond 5 in TenantPolicy "shop" and weir.dev/new-connections-per-second 3',
  );
  assert.equal(
    limitIn(
      textOf('client-limit', { connections: 5 }, { connectionsPerClient: 2, newConnectionsPerSecondPerClient: 1 }),
    ),
    'weir.dev/max-connections-per-client 2 and weir.dev/new-connections-per-second-per-client 1',
  );
  assert.match(
    textOf('too-many-requests', { requestsPerSecond: 50 }, { requestsPerSecond: 9 }),
    /120 requests were refused .* is requestsPerSecond 50 in TenantPolicy "shop" and weir\.dev\/requests-per-second 9; let clients send fewer requests, /,
  );
  assert.equal(limitIn(textOf('rate-limit', {}, {})), 'no longer set, or the built-in limit of UDP flows');
  assert.equal(limitIn(textOf('too-many-requests', {}, {})), 'no longer set');
});

test('the message says what is used of the limits', () => {
  const textOf = (reason: LimitRefusals['reason']): string => {
    const settings = {
      ...DEFAULT_SERVICE_SETTINGS,
      limits: { ...DEFAULT_SERVICE_SETTINGS.limits, connections: 40, requestsPerSecond: 9 },
    };
    const limits = { connections: 50, newConnectionsPerSecond: 200, requestsPerSecond: 30 };
    return limitRefusalMessage(
      { ...refusals(reason), used: { tenant: 47, service: 11.26 } },
      { service: { settings }, tenant: { policy: 'shop', limits } },
    );
  };
  assert.match(textOf('connection-limit'), /connections 50 in TenantPolicy "shop" \(47 open\) and /);
  assert.match(textOf('rate-limit'), /newConnectionsPerSecond 200 in TenantPolicy "shop" \(47 connections\/s used\);/);
  assert.match(
    textOf('too-many-requests'),
    /requestsPerSecond 30 in TenantPolicy "shop" \(47 requests\/s used\) and weir\.dev\/requests-per-second 9 \(11\.3 requests\/s used\);/,
  );
});

test('a Service gets no notice about the limits of a tenant to which its namespace does not belong', () => {
  const tenant = (namespaces: readonly string[]): TenantEntry => ({
    kind: 'tenant',
    id: 'tenant/shop',
    name: 'shop',
    policy: 'secret-policy',
    namespaces,
    limits: { connections: 77 },
    used: { services: 1, ports: 1 },
  });
  const messageFor = (owner: TenantEntry): string | undefined => {
    const table = tableOf([
      owner,
      {
        kind: 'service',
        id: 'service/uid',
        uid: 'uid',
        namespace: 'shop-a',
        name: 'web',
        tenant: 'shop',
        accepted: { reason: 'Accepted', message: '' },
        degraded: [],
        settings: DEFAULT_SERVICE_SETTINGS,
        ports: [],
        pool: null,
        nodes: [],
      },
    ]);
    const shown = new Map([
      ['uid', refusals('connection-limit')],
      ['gone', refusals('rate-limit')],
    ]);
    const { byService } = usageNoticesFor(table, { traffic: new Map(), refusals: shown });
    assert.deepEqual([...byService.keys()], ['uid']);
    return byService.get('uid')?.[0]?.message;
  };
  assert.match(messageFor(tenant(['shop-a'])) ?? '', /connections 77.*secret-policy/);
  assert.doesNotMatch(messageFor(tenant(['shop-b'])) ?? '', /77|secret-policy/);
  assert.match(
    messageFor(tenant(['shop-b'])) ?? '',
    /the limit is not shown, because several policies claim the tenant;/,
  );
});
