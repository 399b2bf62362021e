import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { eventually } from '@weir/testkit';
import {
  insideNamespace,
  type PreviousVersion,
  requirePreviousVersions,
  requireProgram,
  unpackPreviousVersion,
} from '@weir/tools';
import { ALL_ADDRESSES, NODES } from '../../src/addresses.ts';
import { CHECKOUT, type Fleet, startFleet } from '../../src/fleet.ts';
import { Pods } from '../../src/pods.ts';
import { type LimitedTenant, startLimitedTenant } from '../../src/version-skew/limited-tenant.ts';
import { type SteadyTenant, startSteadyTenant } from '../../src/version-skew/steady-tenant.ts';
import { assertUsage } from '../../src/version-skew/traffic-totals.ts';

// Upgrades from each previous version to this version and downgrades again, part by part and under continuous load, as docs/upgrade.md
// promises. Runs processes instead of images, with a real API server and a real Redis.
const { skip, versions } = requirePreviousVersions();
const requirement = {
  ...requireProgram('redis', 'kubernetes'),
  ...skip,
  ...insideNamespace({ addresses: ALL_ADDRESSES, sysctls: { 'net/ipv4/tcp_migrate_req': 1 } }),
};

describe('a fleet of two versions', { ...requirement, timeout: 600_000 }, () => {
  for (const version of versions)
    describe(`of which the previous is ${version.name}`, { timeout: 300_000 }, () => declareTests(version));
});

function declareTests(version: PreviousVersion): void {
  let previous: ReturnType<typeof unpackPreviousVersion>;
  let fleet: Fleet;
  let pods: Pods;
  let shop: SteadyTenant;
  let game: LimitedTenant;
  const oldWeir = (...args: string[]): Promise<string> => fleet.weirFromCheckout(previous.path, ...args);

  before(async () => {
    previous = unpackPreviousVersion(version);
    fleet = await startFleet({ checkout: previous.path });
    pods = new Pods(fleet.cluster);
    shop = await startSteadyTenant(fleet, pods);
    game = await startLimitedTenant(fleet, pods);
  });
  after(async () => {
    await shop?.clients.stop();
    await pods?.close();
    await fleet?.close();
    await previous?.close();
  });

  /** Replaces the proxies node by node while a client stays connected. After the first node, proxies of both versions are running. */
  const replaceProxies = async (checkout: string, weir: (...args: string[]) => Promise<string>): Promise<void> => {
    for (const node of NODES) {
      const held = await shop.openConnection(node);
      const old = await fleet.replaceProxyFromCheckout(checkout, node);
      await shop.clients.waitForMore(50);
      await held.finish();
      assert.deepEqual(await old.exited, { code: 0, signal: null });
      if (node === NODES[0]) await game.assertLimitAndSuspension(weir);
    }
  };

  test('a new controller works with old proxies and restores the table after Redis is wiped', async () => {
    await fleet.restartFromCheckout(CHECKOUT, 'controller');
    await game.assertLimitAndSuspension(oldWeir);
    await fleet.redis.wipe();
    await game.assertLimitAndSuspension(oldWeir);
    await shop.clients.waitForMore(50);
  });

  test('commands and consoles of both versions print the same', async () => {
    const views: unknown[] = [];
    for (const console of [previous.path, CHECKOUT]) {
      await fleet.restartFromCheckout(console, 'console');
      for (const weir of [oldWeir, fleet.weir]) views.push(await consoleView(weir));
    }
    for (const view of views) assert.deepEqual(view, views[0]);
  });

  test('upgrading the proxies one by one fails no connection', async () => {
    await replaceProxies(CHECKOUT, fleet.weir);
  });

  test('an old controller and an old console work with new proxies', async () => {
    for (const part of ['controller', 'console'] as const) await fleet.restartFromCheckout(previous.path, part);
    await game.assertLimitAndSuspension(fleet.weir);
    await shop.clients.waitForMore(50);
  });

  test('downgrading the proxies one by one fails no connection', async () => {
    await replaceProxies(previous.path, oldWeir);
  });

  test('the ledger contains the usage once, exactly', async () => {
    const counted = await shop.close();
    assert.deepEqual(shop.clients.failures, []);
    await assertUsage(fleet, 'shop', counted);
  });
}

type Json = Readonly<Record<string, unknown>>;
type WeirCommand = (...args: string[]) => Promise<string>;

/**
 * Returns selected fields of the console's responses about an idle fleet. Omits other fields, because a later version may add fields and
 * reword messages.
 */
export async function consoleView(weir: WeirCommand): Promise<Json> {
  const json = async (...args: string[]): Promise<Json> => JSON.parse(await weir(...args, '-o', 'json')) as Json;
  const items = async (...args: string[]): Promise<readonly Json[]> => (await json(...args)).items as readonly Json[];
  // Waits for the proxies, because a console that has just started knows no table and no proxies.
  const proxies = await eventually(
    async () => {
      const found = pickFields(await items('get', 'proxies'), 'node', 'state', 'addresses', 'listeners');
      assert.ok(found.length > 0 && found.every(({ state }) => state === 'Serving'), JSON.stringify(found));
      return found;
    },
    { timeoutMs: 30_000, intervalMs: 250 },
  );
  const [services, tenants, problems, usage, explained, { tenants: live }] = await Promise.all([
    items('get', 'services'),
    items('get', 'tenants'),
    items('get', 'problems'),
    items('usage', 'game'),
    json('explain', 'game/world'),
    json('top', '--once'),
  ]);
  return {
    proxies,
    services: pickFields(services, 'namespace', 'name', 'tenant', 'state', 'addresses', 'ports', 'endpoints'),
    tenants: pickFields(tenants, 'name', 'policy', 'limits', 'namespaces', 'suspension'),
    problems: pickFields(problems, 'code', 'subject', 'severity'),
    usage: pickFields(usage, 'tenant', 'month', 'receivedBytes', 'sentBytes', 'connections', 'services'),
    explained: pickFields([explained], 'namespace', 'name', 'state', 'addresses'),
    live: pickFields(live as readonly Json[], 'name').toSorted((a, b) => (String(a.name) < String(b.name) ? -1 : 1)),
  };
}

function pickFields(items: readonly Json[], ...fields: readonly string[]): readonly Json[] {
  return items.map((item) => Object.fromEntries(fields.map((field) => [field, item[field]])));
}
