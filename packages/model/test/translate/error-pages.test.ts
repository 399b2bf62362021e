import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type ConfigMapObject,
  DEFAULT_FLEET_SETTINGS,
  decodeEntry,
  type ErrorPagesEntry,
  encodeEntry,
  errorPagesId,
  NO_ALLOCATIONS,
  type ServiceObject,
  type Snapshot,
  type Translation,
  Translator,
} from '@weir/model';
import { configMap, namespace, policy, port, service, slice, snapshotOf, team } from '../fixtures/snapshot.ts';
import { messageOf, reasonOf, statusOf, translateAfter, translateFresh } from '../fixtures/translation.ts';

const settings = { ...DEFAULT_FLEET_SETTINGS, nodesPerService: 1 };
const web = (annotations: Record<string, string> = { 'weir.dev/error-pages': 'pages' }): ServiceObject =>
  service('shop/web', { ports: [port(80, { appProtocol: 'http' })], annotations });
const given = (more: Partial<Snapshot>): Partial<Snapshot> => ({ settings, services: [web()], ...more });
const pagesOf = ({ table }: Translation): ErrorPagesEntry['pages'] | undefined => {
  const entry = table.entries.get(errorPagesId('uid-shop-web'));
  return entry?.kind === 'error-pages' ? entry.pages : undefined;
};
const withPages = (pages: Readonly<Record<string, string>>): ConfigMapObject =>
  configMap('shop/pages', { errorPages: { kind: 'good', pages } });
const degradedOf = (translation: Translation): readonly string[] =>
  statusOf(translation, 'shop/web').degraded.map(({ reason, message }) => `${reason}: ${message}`);
const withBytes = (tableBytes: number): Partial<Snapshot> => ({
  namespaces: [namespace('shop', { team: 'shop' })],
  policies: [policy('shop', { namespaceSelector: team('shop'), limits: { tableBytes } })],
});

describe('a Service with error pages', () => {
  test('gets the pages of its ConfigMap in an entry of their own', () => {
    const translation = translateFresh(given({ configMaps: [configMap('shop/pages'), configMap('game/pages')] }));
    const entry = translation.table.entries.get('error-pages/uid-shop-web');
    assert.deepEqual(entry, {
      kind: 'error-pages',
      id: 'error-pages/uid-shop-web',
      service: 'uid-shop-web',
      pages: { '404.html': 'page of shop/pages' },
    });
    assert.deepEqual(decodeEntry(encodeEntry(entry)), entry);
    assert.equal(decodeEntry(encodeEntry(entry).replace('"page of shop/pages"', '1')), undefined);
    assert.deepEqual(degradedOf(translation), []);
  });

  test('is served with the pages of Weir if the ConfigMap is missing or cannot be used, and says why', () => {
    const missing = translateFresh(given({ configMaps: [] }));
    assert.equal(reasonOf(missing, 'shop/web'), 'Accepted');
    assert.deepEqual(degradedOf(missing), [
      'ErrorPagesNotUsed: ConfigMap "pages" of annotation weir.dev/error-pages does not exist in namespace "shop"; create it: kubectl create configmap pages --from-file=DIRECTORY -n shop; until then, clients get the error pages of Weir',
    ]);
    const served = translateFresh(given({ configMaps: [configMap('shop/pages')] }));
    const unusable = configMap('shop/pages', {
      errorPages: { kind: 'unusable', why: 'has a 404.html that is not text' },
    });
    const broken = translateAfter(served, given({ configMaps: [unusable] }));
    assert.equal(pagesOf(broken), undefined);
    assert.deepEqual(degradedOf(broken), [
      'ErrorPagesNotUsed: ConfigMap "pages" of annotation weir.dev/error-pages has a 404.html that is not text; correct the ConfigMap; until then, clients get the error pages of Weir',
    ]);
  });

  test('keeps its pages while the ConfigMap is not read', () => {
    const served = translateFresh(given({ configMaps: [configMap('shop/pages')] }));
    for (const reason of ['waiting', 'forbidden', 'too-many'] as const) {
      const unreadConfigMaps = new Map([['shop/pages', reason]]);
      const after = translateAfter(served, given({ unreadConfigMaps }));
      assert.deepEqual(pagesOf(after), { '404.html': 'page of shop/pages' });
      assert.equal(degradedOf(after).length, reason === 'waiting' ? 0 : 1);
      const renamed = { services: [web({ 'weir.dev/error-pages': 'other' })] };
      const other = translateAfter(served, given({ unreadConfigMaps: new Map([['shop/other', reason]]), ...renamed }));
      assert.equal(pagesOf(other), undefined, 'the pages of another ConfigMap');
    }
  });

  test('keeps its pages while its new settings are refused', () => {
    const served = translateFresh(given({ configMaps: [configMap('shop/pages')] }));
    const refused = web({ 'weir.dev/error-pages': 'pages', 'weir.dev/nodes': 'x' });
    const after = translateAfter(served, given({ services: [refused], configMaps: [] }));
    assert.equal(reasonOf(after, 'shop/web'), 'InvalidAnnotation');
    assert.deepEqual(pagesOf(after), { '404.html': 'page of shop/pages' });
  });

  test('may use as many bytes of the table as its tenant has left', () => {
    const small = { configMaps: [withPages({ 'default.html': 'small' })] };
    const large = { configMaps: [withPages({ 'default.html': 'x'.repeat(10_000) })] };
    const refused = translateFresh(given({ ...withBytes(5_000), ...large }));
    assert.equal(reasonOf(refused, 'shop/web'), 'QuotaExceeded');
    const served = translateFresh(given({ ...withBytes(5_000), ...small }));
    assert.equal(reasonOf(served, 'shop/web'), 'Accepted');
    const grown = translateAfter(served, given({ ...withBytes(5_000), ...large }));
    assert.equal(reasonOf(grown, 'shop/web'), 'QuotaExceeded');
    assert.match(messageOf(grown, 'shop/web'), /another 10 KiB in the routing table.*last accepted settings stay/);
    assert.deepEqual(pagesOf(grown), { 'default.html': 'small' });
    const allowed = translateAfter(grown, given({ ...withBytes(20_000), ...large }));
    assert.equal(pagesOf(allowed)?.['default.html']?.length, 10_000);
  });

  test('changes only the entry of the pages if a page changes', () => {
    const translator = new Translator(settings, NO_ALLOCATIONS);
    const before = snapshotOf(
      given({
        services: [web(), service('shop/api', { ports: [port(8443)] })],
        slices: [slice('shop/web', ['10.0.0.1'])],
        configMaps: [configMap('shop/pages')],
      }),
    );
    const first = translator.translate(before).table;
    const changed = { ...before, configMaps: [withPages({ '404.html': 'new' })] };
    const second = translator.translate(changed).table;
    const ids = [...second.entries].filter(([id, entry]) => first.entries.get(id) !== entry).map(([id]) => id);
    assert.deepEqual(ids, ['error-pages/uid-shop-web']);
    const third = translator.translate({ ...changed, configMaps: [...changed.configMaps, configMap('shop/x')] }).table;
    assert.equal(third, second, 'a ConfigMap that no Service names changes nothing');
  });
});
