// The chart's dashboard and the controller's metrics must match.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { systemClock } from '@weir/runtime';
import { createMetrics } from '@weir/runtime/metrics';
import { addControllerMetrics } from '../../src/controller/controller-metrics.ts';

type Panel = {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
};

const file = new URL('../../../../charts/weir/dashboards/control-plane.json', import.meta.url);
const { panels } = JSON.parse(readFileSync(file, 'utf8')) as { readonly panels: readonly Panel[] };
const shown = new Set(
  panels
    .flatMap(({ targets = [] }) => targets)
    .flatMap(({ expr }) => expr.match(/weir_\w+/g) ?? [])
    .map((name) => name.replace(/_bucket$/, '')),
);
/** Metrics of the store and of the proxy that the dashboard uses. e2e/test/chart/monitoring.test.ts checks that these metrics exist. */
const otherMetrics = [
  'weir_table_propagation_seconds',
  'weir_proxy_event_loop_delay_seconds',
  'weir_store_call_duration_seconds',
  'weir_store_call_errors_total',
  'weir_store_reconnects_total',
  'weir_usage_backlog_seconds',
];

describe('the dashboard of the control plane', () => {
  test('shows every metric of the controller, and no unknown metric', async () => {
    const metrics = createMetrics();
    addControllerMetrics(metrics, systemClock);
    const text = await metrics.render();
    const registered = [...text.matchAll(/^# TYPE (weir_controller_\w+) /gm)].map(([, name]) => name ?? '');
    assert.ok(registered.length > 10);
    assert.deepEqual([...shown].sort(), [...registered, ...otherMetrics].sort());
  });

  test('has no overlapping panels, and no panel outside the grid', () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x},${y}`), `${title} overlaps another panel`);
          taken.add(`${x},${y}`);
        }
      }
    }
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  });
});
