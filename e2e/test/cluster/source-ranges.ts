import { before, describe, test } from 'node:test';
import { connectClient } from '@weir/testkit';
import { CLIENT_ADDRESSES, type NodeFleet } from '../../src/cluster/node-fleet.ts';
import { waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, namespaceManifest } from '../../src/manifests.ts';

const namespace = 'ranges';
const path = `${namespace}/echo`;
const TCP = { name: 'tcp', port: 7300 } as const;
const UDP = { name: 'udp', port: 7300, protocol: 'UDP' } as const;
const [ONE, OTHER] = CLIENT_ADDRESSES;

export function sourceRanges(fleet: () => NodeFleet): void {
  describe('loadBalancerSourceRanges', () => {
    const allow = (ranges: readonly string[] | null): Promise<void> =>
      fleet().patchServiceSpec(path, { loadBalancerSourceRanges: ranges });
    const isAnswered = async (from: string): Promise<void> => {
      for (const port of [TCP, UDP]) await waitForProbeResult(fleet(), { ...port, from }, 'answered');
    };
    /**
     * Asserts that a client is refused. The kernel accepts a TCP connection before the proxy sees the source address, so the proxy closes
     * the connection without data.
     */
    const isRefused = async (from: string): Promise<void> => {
      await waitForProbeResult(fleet(), { ...TCP, from }, 'closed');
      await waitForProbeResult(fleet(), { ...UDP, from }, 'silent');
    };

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceManifest(namespace));
      await apply(echoPods({ namespace, replicas: 1 }), echoService({ namespace, ports: [TCP, UDP] }));
      await waitUntilServed(fleet(), path);
    });

    test('admit every client by default', async () => {
      for (const client of CLIENT_ADDRESSES) await isAnswered(client);
    });

    test('refuse clients outside of new ranges', async () => {
      await allow([`${ONE}/32`]);
      await isRefused(OTHER);
      await isAnswered(ONE);
    });

    test('admit and refuse clients by changed ranges', async () => {
      await allow([' 192.0.2.0/24 ', `${OTHER}/31`]);
      await isRefused(ONE);
      await isAnswered(OTHER);
    });

    test('admit every client again after they are cleared', async () => {
      await using before = await connectClient({
        host: fleet().addresses[0] ?? '',
        port: TCP.port,
        localAddress: OTHER,
      });
      await before.take(/\n/);
      await allow(null);
      for (const client of CLIENT_ADDRESSES) await isAnswered(client);
      await before.send('still here');
      await before.take(/still here/);
    });
  });
}
