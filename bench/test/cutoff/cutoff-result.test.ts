import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type CutoffReading,
  cutoffTable,
  formatRestart,
  holdsAcrossRestart,
  isCutOff,
  kindTable,
  summarizeCutoff,
} from '../../src/cutoff/cutoff-result.ts';
import type { ConnectionReading } from '../../src/cutoff/target-clients-process.ts';
import { CONNECTION_KINDS } from '../../src/cutoff/topology.ts';

const QUIET = { operations: 100, p50: 1, p99: 2, lost: 0, firstLoss: null };

/** Returns a round with one connection of each kind through two proxies, whose cut-offs began at 1,000 and at 2,000. */
function round(change: Partial<CutoffReading> = {}): CutoffReading {
  const connections = [0, 1].flatMap((proxy) =>
    CONNECTION_KINDS.map((kind, index): ConnectionReading => {
      const begin = 1_000 * (proxy + 1);
      return { kind, proxy, lastByteAt: begin + 100 * index, endedAt: begin + 500 };
    }),
  );
  return { connections, startedAt: [1_000, 2_000], commandMs: 300, before: QUIET, during: QUIET, ...change };
}

describe('summarizeCutoff', () => {
  test('measures each connection from the start of the cut-off at its proxy', () => {
    const row = summarizeCutoff('suspend', [round()]);
    assert.deepEqual(
      [row.connections, row.lastByteMs.lowest, row.lastByteMs.highest, row.endMs.highest],
      [8, 0, 300, 500],
    );
    assert.equal(row.lastByteMsByKind.http2.highest, 200);
    assert.ok(isCutOff(row));
  });

  test('counts no time before the start', () => {
    const [first, ...others] = round().connections;
    assert.ok(first);
    const row = summarizeCutoff('suspend', [round({ connections: [{ ...first, lastByteAt: 10 }, ...others] })]);
    assert.equal(row.lastByteMs.lowest, 0);
  });

  test('leaves UDP out of the ends, because a UDP client notices the end only when it sends again', () => {
    const connections = round().connections.map((each) => (each.kind === 'udp' ? { ...each, endedAt: 9_000 } : each));
    assert.equal(summarizeCutoff('suspend', [round({ connections })]).endMs.highest, 500);
  });

  test('misses the target if a connection does not end, ends late, or if another tenant loses an operation', () => {
    const withFirst = (change: Partial<ConnectionReading>): CutoffReading => {
      const [first, ...others] = round().connections;
      assert.ok(first);
      return round({ connections: [{ ...first, ...change }, ...others] });
    };
    for (const reading of [
      withFirst({ endedAt: null }),
      withFirst({ lastByteAt: 3_000 }),
      round({ during: { ...QUIET, lost: 1, firstLoss: 'a connection ended' } }),
    ])
      assert.equal(isCutOff(summarizeCutoff('suspend', [round(), reading])), false);
  });
});

test('prints one row per scenario, and one per scenario with each kind', () => {
  const rows = [summarizeCutoff('suspend', [round(), round()])];
  assert.match(cutoffTable(rows)[2] ?? '', /^\| suspend +\| 16 +\| 300 +\| 150 .* ≤ 1000 ms, met \(0\.30 ×\) \|$/);
  assert.match(kindTable(rows)[2] ?? '', /^\| suspend .* 0, 0 .* 100, 100 .* 200, 200 .* 300, 300 +\|$/);
});

test('holds across a restart only if no client was served before the release, and clients are served afterwards', () => {
  assert.ok(holdsAcrossRestart({ attempts: 10, served: 0, resumed: true }));
  assert.equal(holdsAcrossRestart({ attempts: 10, served: 1, resumed: true }), false);
  assert.equal(holdsAcrossRestart({ attempts: 10, served: 0, resumed: false }), false);
  assert.match(formatRestart({ attempts: 10, served: 1, resumed: true }), /^restart: 1 of 10 attempts/);
});
