import {
  type CertificateEntry,
  type Change,
  certificateId,
  type Entry,
  type Heartbeat,
  type Suspension,
  type TablePosition,
  type UsageReport,
} from '@weir/model';
import type { PublishRequest, Store } from '../../src/contract.ts';
import type { PositionedTable } from '../../src/follow/follow-table.ts';

let ids = 0;
export const newId = (): string => `id-${++ids}`;

/** Returns a small entry whose content depends on `version`. */
export function entry(name: string, version = 0): Entry {
  const id = `node/${name}`;
  return {
    kind: 'node',
    id,
    name,
    bindAddresses: [`10.0.0.${version}`],
    publishedAddresses: [],
    zone: null,
    pool: 'default',
  };
}

export function put(name: string, version = 0): Extract<Change, { kind: 'put' }> {
  return { kind: 'put', entry: entry(name, version) };
}

export function remove(name: string): Change {
  return { kind: 'delete', id: `node/${name}` };
}

/** Returns the certificate of a Service. Each `version` has another private key. */
export function certificate(service: string, version = 0): CertificateEntry {
  return {
    kind: 'certificate',
    id: certificateId(service),
    service,
    chain: `chain ${version}`,
    keyDigest: `digest-${version}`,
    sealedKey: `1.sealed-${service}-${version}`,
    notAfter: 1_900_000_000_000,
    clientAuthorities: null,
  };
}

export function putCertificate(service: string, version = 0): Extract<Change, { kind: 'put' }> {
  return { kind: 'put', entry: certificate(service, version) };
}

export function removeCertificate(service: string): Change {
  return { kind: 'delete', id: certificateId(service) };
}

/** Returns the entries of a table by id, for comparison. */
export function contentOf(table: PositionedTable['table'] | undefined): Record<string, Entry> {
  return Object.fromEntries([...(table?.entries ?? [])].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export function contentOfEntries(...entries: Entry[]): Record<string, Entry> {
  return Object.fromEntries(entries.sort((a, b) => (a.id < b.id ? -1 : 1)).map((each) => [each.id, each]));
}

/** Claims leadership and opens an epoch. Returns the leader token and the position. */
export async function openEpochAsLeader(store: Store): Promise<{ leader: number; position: TablePosition }> {
  const leader = await store.table.claimLeader();
  const opened = await store.table.openEpoch({ leader, id: newId() });
  if (opened.kind !== 'published') throw new Error(`openEpoch returned ${opened.kind}`);
  return { leader, position: opened.position };
}

/** Publishes one revision and returns its position. */
export async function publish(
  store: Store,
  publication: Pick<PublishRequest, 'leader' | 'predecessor' | 'changes' | 'changedAt'> & {
    readonly complete?: boolean;
  },
): Promise<TablePosition> {
  const result = await store.table.publish({ id: newId(), complete: true, ...publication });
  if (result.kind !== 'published') throw new Error(`publish returned ${result.kind}`);
  return result.position;
}

export function heartbeat(node: string, life: number, over: Partial<Heartbeat> = {}): Heartbeat {
  return {
    node,
    life,
    version: '0.0.0',
    startedAt: 1_700_000_000_000,
    draining: false,
    addresses: ['10.0.0.1'],
    applied: { epoch: 1, revision: 2, id: 'x' },
    cutoffSequence: 3,
    listeners: [{ id: 'listener/n/10.0.0.1/TCP/80', service: 'u1', bound: true, listening: false, error: null }],
    workers: 2,
    connections: 5,
    ...over,
  };
}

export function suspension(uid: string, over: Partial<Suspension> = {}): Suspension {
  return {
    uid,
    name: `stop-${uid}`,
    target: { kind: 'tenant', tenant: 'shop' },
    message: 'too much',
    until: null,
    reason: 'SuspendedByOperator',
    origin: { kind: 'store' },
    createdAt: null,
    ...over,
  };
}

/** Returns a report of one slot. The other counters are derived from the received bytes. */
export function report(
  points: readonly (readonly [minute: number, receivedBytes: number])[],
  over: { node?: string; life?: number; service?: string; tenant?: string } = {},
): UsageReport {
  const { node = 'n1', life = 7, service = 'u1', tenant = 'shop' } = over;
  return {
    node,
    life,
    slots: [
      {
        service,
        tenant,
        namespace: 'shop',
        name: 'web',
        points: points.map(([minute, receivedBytes]) => ({
          minute,
          counters: { receivedBytes, sentBytes: receivedBytes * 2, connections: 1, requests: 0 },
        })),
      },
    ],
  };
}
