import { before, describe, test } from 'node:test';
import { connectRaw } from '@weir/testkit';
import { echoPods, echoService, namespaceObject } from '../../src/cluster/echo-objects.ts';
import { comesTo, servedWell } from '../../src/cluster/expectations.ts';
import { CLIENTS, type RealFleet } from '../../src/cluster/real-fleet.ts';

const namespace = 'ranges';
const path = `${namespace}/echo`;
const TCP = { name: 'tcp', port: 7300 } as const;
const UDP = { name: 'udp', port: 7300, protocol: 'UDP' } as const;
const [ONE, OTHER] = CLIENTS;

export function sourceRanges(fleet: () => RealFleet): void {
  describe('loadBalancerSourceRanges', () => {
    const allow = (ranges: readonly string[] | null): Promise<void> =>
      fleet().change(path, { loadBalancerSourceRanges: ranges });
    const isAnswered = async (from: string): Promise<void> => {
      for (const port of [TCP, UDP]) await comesTo(fleet(), { ...port, from }, 'answered');
    };
    /** The kernel has accepted before a proxy sees from where; what it then says is nothing. */
    const isKeptOut = async (from: string): Promise<void> => {
      await comesTo(fleet(), { ...TCP, from }, 'cut');
      await comesTo(fleet(), { ...UDP, from }, 'silent');
    };

    before(async () => {
      const { apply } = fleet();
      await apply(namespaceObject(namespace));
      await apply(echoPods({ namespace, replicas: 1 }), echoService({ namespace, ports: [TCP, UDP] }));
      await servedWell(fleet(), path);
    });

    test('that are not set let everybody in', async () => {
      for (const client of CLIENTS) await isAnswered(client);
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
      await using before = await connectRaw({ host: fleet().addresses[0] ?? '', port: TCP.port, localAddress: OTHER });
      await before.take(/\n/);
      await allow(null);
      for (const client of CLIENTS) await isAnswered(client);
      await before.send('still here');
      await before.take(/still here/);
    });
  });
}
