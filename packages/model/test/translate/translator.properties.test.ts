// Checks that an incremental translation equals a full translation over the same allocations, for random histories.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  allocationsFor,
  type CertificateEntry,
  certificateId,
  entriesOf,
  NO_ALLOCATIONS,
  type RoutingTable,
  type Snapshot,
  serviceSettingsFor,
  Translator,
  translate,
} from '@weir/model';
import fc from 'fast-check';
import { histories, historySettings, nodeSets } from '../fixtures/arbitrary-history.ts';
import { service, slice, snapshotOf } from '../fixtures/snapshot.ts';

const sorted = ({ entries }: RoutingTable): unknown => [...entries].sort(([a], [b]) => (a < b ? -1 : 1));

test('translates incrementally to the same table and problems as in full', () => {
  fc.assert(
    fc.property(histories({ minLength: 1 }), (history) => {
      const translator = new Translator(historySettings, NO_ALLOCATIONS);
      let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes: nodeSets[1] ?? [] });
      let allocations = NO_ALLOCATIONS;
      for (const step of history) {
        snapshot = step(snapshot);
        const full = translate(snapshot, allocations);
        const next = translator.translate(snapshot);
        assert.deepEqual(sorted(next.table), sorted(full.table));
        assert.deepEqual(next.problems, full.problems);
        allocations = allocationsFor(full.table);
      }
    }),
    { numRuns: 500 },
  );
});

test('gives a certificate entry to exactly the served Services that terminate TLS', () => {
  fc.assert(
    fc.property(histories({ minLength: 1 }), (history) => {
      const translator = new Translator(historySettings, NO_ALLOCATIONS);
      let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes: nodeSets[1] ?? [] });
      for (const step of history) {
        snapshot = step(snapshot);
        const { table } = translator.translate(snapshot);
        const ending = entriesOf(table, 'service').filter(({ settings }) => settings?.tls !== undefined);
        const shown = entriesOf(table, 'certificate').map(({ service }) => service);
        assert.deepEqual(shown.sort(), ending.map(({ uid }) => uid).sort());
        for (const { uid, settings } of ending) {
          const { clientAuthorities } = table.entries.get(certificateId(uid)) as CertificateEntry;
          assert.equal(
            clientAuthorities !== null,
            settings?.tls?.clientCaSecret !== null,
            'expected client CAs exactly if the settings name them',
          );
        }
      }
    }),
    { numRuns: 300 },
  );
});

test('opens no new port without the TLS termination or the HTTP that the Service requests', () => {
  fc.assert(
    fc.property(histories({ minLength: 2 }), (history) => {
      const translator = new Translator(historySettings, NO_ALLOCATIONS);
      let snapshot: Snapshot = snapshotOf({ settings: historySettings, nodes: nodeSets[1] ?? [] });
      let served = new Set<string>();
      for (const step of history) {
        snapshot = step(snapshot);
        const { table } = translator.translate(snapshot);
        const entries = new Map(entriesOf(table, 'service').map((each) => [each.uid, each]));
        for (const each of snapshot.services) {
          const parsed = serviceSettingsFor(each);
          const requested = parsed.kind === 'settings' ? parsed.settings : undefined;
          const given = entries.get(each.uid);
          // A UDP port with the same number has neither TLS nor HTTP.
          const isNewAndOpen = (port: number): boolean =>
            !served.has(`${each.uid} ${port}/TCP`) &&
            given?.settings !== null &&
            given?.ports.some((own) => own.port === port && own.protocol === 'TCP' && own.error === null) === true;
          for (const { port } of requested?.tls?.ports ?? []) {
            const isGranted = given?.settings?.tls?.ports.some((own) => own.port === port) === true;
            assert.ok(!isNewAndOpen(port) || isGranted, `${each.name} at ${port}`);
          }
          for (const port of requested?.httpPorts ?? []) {
            const isGranted = given?.settings?.httpPorts?.includes(port) === true;
            assert.ok(!isNewAndOpen(port) || isGranted, `${each.name} at ${port}`);
          }
        }
        const open = [...entries.values()].flatMap(({ uid, settings: own, ports }) =>
          own === null
            ? []
            : ports.flatMap(({ port, protocol, error }) => (error === null ? [`${uid} ${port}/${protocol}`] : [])),
        );
        served = new Set(open);
      }
    }),
    { numRuns: 1_000 },
  );
});

test('returns the same table and problems objects if nothing changes', () => {
  const translator = new Translator(historySettings, NO_ALLOCATIONS);
  const snapshot = snapshotOf({
    settings: historySettings,
    services: [service('a/web'), service('b/web')],
    slices: [slice('a/web', [])],
  });
  const first = translator.translate(snapshot);
  const second = translator.translate({ ...snapshot });
  assert.equal(second.table, first.table);
  assert.equal(second.problems, first.problems);
});

test('keeps the entry objects of other Services when one Service changes', () => {
  const translator = new Translator(historySettings, NO_ALLOCATIONS);
  const [web, api] = [service('a/web'), service('b/api')];
  const first = translator.translate(snapshotOf({ settings: historySettings, services: [web, api] }));
  const other = { ...web, annotations: { 'weir.dev/algorithm': 'first' } };
  const second = translator.translate({ ...snapshotOf({ settings: historySettings, services: [other, api] }) });
  const entry = (table: RoutingTable, uid: string): unknown => table.entries.get(`service/${uid}`);
  assert.notEqual(entry(second.table, web.uid), entry(first.table, web.uid));
  assert.equal(entry(second.table, api.uid), entry(first.table, api.uid));
});

test('throws if the fleet settings differ from those of the constructor', () => {
  const translator = new Translator(historySettings, NO_ALLOCATIONS);
  assert.throws(() => translator.translate(snapshotOf({})), /expected a new Translator/);
});
