import { before, describe, test } from 'node:test';
import { connectClient } from '@weir/testkit';
import { CLIENT_ADDRESSES, type NodeFleet } from '../../src/cluster/node-fleet.ts';
import { waitForProbeResult, waitUntilServed } from '../../src/cluster/probe.ts';
import { echoPods, echoService, plainNamespace } from '../../src/manifests.ts';

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
    /** The kernel has accepted before a proxy sees from where; what it then says is nothing. */
    const isKeptOut = async (from: string): Promise<void> => {
      await waitForProbeResult(fleet(), { ...TCP, from }, 'closed');
      await waitForProbeResult(fleet(), { ...UDP, from }, 'silent');
    };

    before(async () => {
      const { apply } = fleet();
      await apply(plainNamespace(namespace));
      await apply(echoPods({ namespace, replicas: 1 }), echoService({ namespace, ports: [TCP, UDP] }));
      await waitUntilServed(fleet(), path);
    });

    test('that are not set let everybody in', async () => {
      for (const client of CLIENT_ADDRESSES) await isAnswered(client);
    });

    test('that are set on a live Service keep out who is not in them', async () => {
      await allow([`${ONE}/32`]);
      await isKeptOut(OTHER);
      await isAnswered(ONE);
    });

    test('that are changed let in who was kept out, and keep out who was let in', async () => {
      await allow([' 192.0.2.0/24 ', `${OTHER}/31`]);
      await isKeptOut(ONE);
      await isAnswered(OTHER);
    });

    test('that are cleared let everybody in again', async () => {
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
