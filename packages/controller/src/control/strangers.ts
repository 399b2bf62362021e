import { entriesOf, type Heartbeat, type ListenerReport, type RoutingTable, type Snapshot } from '@weir/model';

/**
 * With what is believed of proxies that are there and cannot be understood, since they are of another version: whatever is published for
 * their node they have, and nothing else. So no address is withdrawn that works, and none is published that nobody has confirmed.
 */
export function withStrangers(
  heartbeats: readonly Heartbeat[],
  { table, snapshot }: { readonly table: RoutingTable; readonly snapshot: Pick<Snapshot, 'services'> },
): readonly Heartbeat[] {
  const strangers = heartbeats.filter(({ unreadable }) => unreadable !== undefined);
  if (strangers.length === 0) return heartbeats;
  // Who can be understood speaks for its node.
  const understood = new Set(heartbeats.flatMap((each) => (isServing(each) ? each.node : [])));
  const published = new Map(snapshot.services.map(({ uid, publishedIPs }) => [uid, publishedIPs]));
  const addresses = new Map(entriesOf(table, 'node').map((node) => [node.name, new Set(node.publishedAddresses)]));
  const byNode = Map.groupBy(entriesOf(table, 'listener'), ({ node }) => node);
  const reportsOf = (node: string): ListenerReport[] =>
    (byNode.get(node) ?? []).flatMap(({ id, service }) => {
      const isPublished = published.get(service)?.some((address) => addresses.get(node)?.has(address)) === true;
      return isPublished ? [{ id, service, bound: true, listening: true, error: null }] : [];
    });
  return heartbeats.map((each) =>
    each.unreadable === undefined || understood.has(each.node) ? each : { ...each, listeners: reportsOf(each.node) },
  );
}

function isServing({ unreadable, draining }: Heartbeat): boolean {
  return unreadable === undefined && !draining;
}
