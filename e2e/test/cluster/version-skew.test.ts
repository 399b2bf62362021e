// From the version before this one to this one and back, part by part, under clients that never rest: what is promised in
// docs/operating.md, "Upgrading and removing". Processes without images, on a real API server and a real Redis.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { insideNamespace, requirePreviousVersion, requireProgram, unpackPreviousVersion } from '@weir/testkit';
import { ALL_ADDRESSES, NODES } from '../../src/addresses.ts';
import { CHECKOUT, type Fleet, startFleet } from '../../src/fleet.ts';
import { Pods } from '../../src/pods.ts';
import { assertUsage } from '../../src/skew/account.ts';
import { type LimitedTenant, startLimitedTenant } from '../../src/skew/game.ts';
import { type SteadyTenant, startSteadyTenant } from '../../src/skew/shop.ts';
import { consoleView } from '../../src/skew/what-is-seen.ts';

const requirement = {
  ...requireProgram('redis', 'kubernetes'),
  ...requirePreviousVersion(),
  ...insideNamespace({ addresses: ALL_ADDRESSES, sysctls: { 'net/ipv4/tcp_migrate_req': 1 } }),
};

describe('a fleet of two versions', { ...requirement, timeout: 600_000 }, () => {
  let previous: ReturnType<typeof unpackPreviousVersion>;
  let fleet: Fleet;
  let pods: Pods;
  let shop: SteadyTenant;
  let game: LimitedTenant;
  const oldWeir = (...args: string[]): Promise<string> => fleet.weirFromCheckout(previous.path, ...args);

  before(async () => {
    previous = unpackPreviousVersion();
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

  /** Node by node, with clients that stay connected; after the first one the fleet is of both versions. */
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

  test('a new controller leads old proxies, and gives them all back when Redis is wiped', async () => {
    await fleet.restartFromCheckout(CHECKOUT, 'controller');
    await game.assertLimitAndSuspension(oldWeir);
    await fleet.redis.wipe();
    await game.assertLimitAndSuspension(oldWeir);
    await shop.clients.waitForMore(50);
  });

  test('commands and consoles of both versions tell the same', async () => {
    const seen: unknown[] = [];
    for (const console of [previous.path, CHECKOUT]) {
      await fleet.restartFromCheckout(console, 'console');
      for (const weir of [oldWeir, fleet.weir]) seen.push(await consoleView(weir));
    }
    for (const each of seen) assert.deepEqual(each, seen[0]);
  });

  test('proxies go over to the new version one after the other, and no client notices', async () => {
    await replaceProxies(CHECKOUT, fleet.weir);
  });

  test('an old controller and an old console lead new proxies', async () => {
    for (const part of ['controller', 'console'] as const) await fleet.restartFromCheckout(previous.path, part);
    await game.assertLimitAndSuspension(fleet.weir);
    await shop.clients.waitForMore(50);
  });

  test('proxies go back to the old version one after the other, and no client notices', async () => {
    await replaceProxies(previous.path, oldWeir);
  });

  test('what was used is on the ledger once, to the byte', async () => {
    const counted = await shop.close();
    assert.deepEqual(shop.clients.failures, []);
    await assertUsage(fleet, 'shop', counted);
  });
});
