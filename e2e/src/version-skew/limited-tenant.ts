// A tenant that is suspended and reaches its limits again and again while the versions of the fleet change.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { NODES, type NodeName, nodeAddress } from '../addresses.ts';
import { assertCutOff, assertEchoed, assertRefused } from '../client-assertions.ts';
import type { Fleet } from '../fleet.ts';
import { loadBalancer, namespaceManifest, tenantPolicy } from '../manifests.ts';
import type { Pods } from '../pods.ts';
import { waitForAddresses } from '../service-status.ts';
import { assertUsage, sumTotals, type TrafficTotals } from './traffic-totals.ts';

const ADDRESSES = NODES.map(nodeAddress);
const PORT = 25565;
const OTHER_TENANT_PORT = 3002;
/** The tenant's connection limit. One, two or three proxies can divide the limit equally. */
const MAX_CONNECTIONS = 6;
const DEFAULT_WAIT = { timeoutMs: 30_000, intervalMs: 100 };

export interface LimitedTenant {
  /** Asserts that a new Service, the connection limit and a Suspension take effect at each proxy, and that the usage ledger is correct. */
  assertLimitAndSuspension(weir: (...args: string[]) => Promise<string>): Promise<void>;
}

export async function startLimitedTenant(fleet: Fleet, pods: Pods): Promise<LimitedTenant> {
  await fleet.cluster.apply(
    tenantPolicy('game', { limits: { connections: MAX_CONNECTIONS } }),
    namespaceManifest('game', { team: 'game' }),
    loadBalancer('game/world', { ports: [{ port: PORT, targetPort: 'main' }] }),
    namespaceManifest('news'),
  );
  await pods.echo({ namespace: 'game', name: 'world-1', labels: { app: 'world' }, number: 2, port: 8080 });
  await pods.echo({ namespace: 'news', name: 'web-1', labels: { app: 'web' }, number: 3, port: 8080 });
  await waitForAddresses(fleet.cluster, 'game/world', ADDRESSES);
  let counted: TrafficTotals = { sent: 0, received: 0, connections: 0 };
  const count = ({ sent, received }: TestClient): void => {
    counted = sumTotals([counted, { sent, received, connections: 1 }]);
  };

  /**
   * Opens as many connections as the limit permits, and asserts that each proxy resets a further connection. All proxies that share limits
   * hold the limit together. Each proxy of a version without shares uses the whole limit.
   */
  const openUntilLimit = async (): Promise<readonly TestClient[]> => {
    const sharing = NODES.filter((node) => sharesLimits(fleet, node));
    const clients: TestClient[] = [];
    for (const node of NODES) {
      const permitted = sharing.includes(node) ? MAX_CONNECTIONS / sharing.length : MAX_CONNECTIONS;
      for (let opened = 0; opened < permitted; opened += 1)
        clients.push(await eventually(() => openEchoConnection(nodeAddress(node), PORT), DEFAULT_WAIT));
    }
    for (const node of NODES)
      await assert.rejects(
        openEchoConnection(nodeAddress(node), PORT),
        /ECONNRESET/,
        `one more than the limit at ${node}, with shares on ${sharing.length} nodes`,
      );
    return clients;
  };

  return {
    async assertLimitAndSuspension(weir) {
      await assertChangePropagates(fleet);
      const players = await openUntilLimit();
      await weir('suspend', 'game', '--message', 'a break');
      for (const player of players) assert.deepEqual(await player.ended, { kind: 'error', code: 'ECONNRESET' });
      players.forEach(count);
      await assertCutOff(ADDRESSES, PORT);
      await weir('resume', 'game');
      for (const host of ADDRESSES) count(await eventually(() => completeConnection(host, PORT), DEFAULT_WAIT));
      await assertUsage(fleet, 'game', counted);
    },
  };
}

function sharesLimits(fleet: Fleet, node: NodeName): boolean {
  return existsSync(join(fleet.checkoutOf(node), 'packages/store/src/lua/exchange-leases.lua'));
}

/**
 * Asserts that every node serves a new Service, and stops serving the Service after its deletion. The Service belongs to another tenant,
 * because probing a closed port would count as usage of the limited tenant.
 */
async function assertChangePropagates(fleet: Fleet): Promise<void> {
  await fleet.cluster.apply(loadBalancer('news/web', { ports: [{ port: OTHER_TENANT_PORT, targetPort: 'main' }] }));
  await waitForAddresses(fleet.cluster, 'news/web', ADDRESSES);
  await assertEchoed(ADDRESSES, OTHER_TENANT_PORT);
  await fleet.cluster.kubectl('delete', 'service', 'web', '-n', 'news');
  await assertRefused(ADDRESSES, OTHER_TENANT_PORT);
}

/** Opens a connection, sends a word, reads the echo and closes the connection. */
async function completeConnection(host: string, port: number): Promise<TestClient> {
  await using client = await openEchoConnection(host, port);
  await client.end();
  assert.deepEqual(await client.ended, { kind: 'end' });
  return client;
}

async function openEchoConnection(host: string, port: number): Promise<TestClient> {
  const client = await connectClient({ host, port });
  try {
    await client.send('hello');
    assert.equal(String(await client.take(5)), 'hello');
    return client;
  } catch (error) {
    await client.close();
    throw error;
  }
}
