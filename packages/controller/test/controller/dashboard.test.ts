// The dashboard of the chart and the metrics that there are: neither without the other.
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
/** Of the proxies: that they have them is tested there. */
const ofProxies = ['weir_table_propagation_seconds', 'weir_proxy_event_loop_delay_seconds'];

describe('the dashboard of the control plane', () => {
  test('shows each metric of the controller, and none that there is not', async () => {
    const metrics = createMetrics();
    addControllerMetrics(metrics, systemClock);
    const text = await metrics.render();
    const there = [...text.matchAll(/^# TYPE (weir_controller_\w+) /gm)].map(([, name]) => name ?? '');
    assert.ok(there.length > 10);
    assert.deepEqual([...shown].sort(), [...there, ...ofProxies].sort());
  });

  test('has no two panels in one place, and none beside the grid', () => {
    const taken = new Set<string>();
    for (const { title, gridPos } of panels) {
      assert.ok(gridPos.x + gridPos.w <= 24, title);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          assert.ok(!taken.has(`${x},${y}`), `${title} lies on another one`);
          taken.add(`${x},${y}`);
        }
      }
    }
    assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  });
});
