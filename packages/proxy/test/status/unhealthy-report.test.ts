import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMatcher, MAX_REPORTED_UNHEALTHY_ENDPOINTS, type Route } from '@weir/model';
import { unhealthyReportFor } from '../../src/status/heartbeat.ts';
import type { UnhealthyPortEndpoint } from '../../src/upstream/health/port-health.ts';
import { tableFor } from '../fixtures/tables.ts';

const ROUTES: readonly Route[] = ['big', 'small'].flatMap((name, index) => [
  ...createMatcher(tableFor({ a: '10.0.0.1' }, [{ name, port: 80 + index, endpoints: [] }]), 'a').routes.values(),
]);

function reportFor(...counts: number[]): ReturnType<typeof unhealthyReportFor> {
  const unhealthy = ROUTES.map((route, index) => ({
    route,
    endpoints: Array.from({ length: counts[index] ?? 0 }, (_, port): UnhealthyPortEndpoint => {
      return { endpoint: { address: '10.1.0.1', port }, state: 'failing', why: '', used: false };
    }),
  }));
  return unhealthyReportFor({ unhealthy: () => unhealthy });
}

test('reports nothing if all endpoints work', () => {
  assert.equal(reportFor(0, 0), undefined);
});

test('counts all unhealthy endpoints and lists at most the maximum, with those of every Service', () => {
  const report = reportFor(5_000, 3);
  assert.equal(report?.total, 5_003);
  assert.equal(report.endpoints.length, MAX_REPORTED_UNHEALTHY_ENDPOINTS);
  assert.equal(report.endpoints.filter(({ service }) => service.endsWith('small')).length, 3);
});
