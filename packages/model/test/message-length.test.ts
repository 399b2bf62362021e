// Checks that messages with the longest names that the API server allows still end with the advice. Lists are cut, but sentences are not.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  allocationsFor,
  entriesOf,
  type Heartbeat,
  limitRefusalMessage,
  NO_ALLOCATIONS,
  type ServiceView,
  type Snapshot,
  serviceViewsFor,
  translate,
  UNRESTRICTED_GRANTS,
  withNotices,
} from '@weir/model';
import { namespace, node, policy, port, secret, service, slice, snapshotOf } from './fixtures/snapshot.ts';

const LONG = 'n'.repeat(63);
const PATH = `${LONG}/${'s'.repeat(63)}`;
const hostOf = (i: number): string => `${[61, 61, 61, 50].map((length) => 'h'.repeat(length)).join('.')}${i}.example`;
const NODES = Array.from({ length: 16 }, (_, i) => node(hostOf(i), `192.0.2.${i + 1}`));
const SETTINGS = { ...snapshotOf({}).settings, nodesPerService: 16, sharedPorts: [443] };
const ports = (from: number, protocol = 'TCP'): Snapshot['services'][number]['ports'] =>
  Array.from({ length: 100 }, (_, i) => port(from + i, { name: `p${i}`, protocol, nodePort: 31_000 + i }));

/**
 * Returns the view of the Service at `PATH` after the snapshots in `history`. `error` is the error with which all proxies fail to bind;
 * null if no proxy has sent a heartbeat. `isSilent` says whether all proxies have been silent for long.
 */
function viewAfter(
  history: readonly Partial<Snapshot>[],
  {
    error = null,
    before = ['192.0.2.1'],
    isSilent = false,
  }: { readonly error?: string | null; readonly before?: readonly string[]; readonly isSilent?: boolean } = {},
): ServiceView {
  let table = translate(snapshotOf({}), NO_ALLOCATIONS).table;
  for (const parts of history) {
    table = translate(snapshotOf({ nodes: NODES, settings: SETTINGS, ...parts }), allocationsFor(table)).table;
  }
  const heartbeats = error === null ? [] : NODES.map(({ name }) => beatOf(table, name, error));
  const fleet = {
    table,
    heartbeats,
    suspensions: [],
    now: 0,
    previousAddresses: new Map([[`uid-${PATH.replace('/', '-')}`, before]]),
    silentSince: new Map(isSilent ? NODES.map(({ name }) => [name, 0]) : []),
  };
  const view = serviceViewsFor({ ...fleet, reachable: true }).find((each) => `${each.namespace}/${each.name}` === PATH);
  return view ?? assert.fail('no such Service');
}

function beatOf(table: Parameters<typeof entriesOf>[0], name: string, error: string): Heartbeat {
  const own = entriesOf(table, 'listener').filter((listener) => listener.node === name);
  return {
    node: name,
    life: 1,
    version: '0',
    startedAt: 0,
    draining: false,
    addresses: [],
    applied: null,
    cutoffSequence: 0,
    listeners: own.map(({ id, service: uid }) => ({
      id,
      service: uid,
      bound: false,
      listening: false,
      error: `${error} ${id}`,
    })),
    workers: 1,
    connections: 0,
  };
}

const POLICY = policy(LONG, {
  grants: {
    ...UNRESTRICTED_GRANTS,
    allowedHosts: ['*.allowed.example'],
    pools: ['default', ...Array.from({ length: 9 }, (_, i) => `${i}${'p'.repeat(62)}`)],
  },
});
const tlsFor = (hosts: readonly string[]): Record<string, string> => ({
  'weir.dev/tls-passthrough': 'true',
  'weir.dev/hosts': hosts.join(','),
});
const hosts = Array.from({ length: 50 }, (_, i) => hostOf(i));

const CASES: Readonly<Record<string, () => ServiceView>> = {
  'UnsupportedProtocol: a hundred ports of another protocol': () =>
    viewAfter([{ services: [service(PATH, { ports: ports(9_000, 'SCTP') })] }]),
  'PortReserved: a hundred reserved ports': () => viewAfter([{ services: [service(PATH, { ports: ports(30_100) })] }]),
  'PortConflict: a hundred ports that others have': () =>
    viewAfter([
      { services: [service('a/web', { ports: ports(9_000) })] },
      { services: [service('a/web', { ports: ports(9_000) }), service(PATH, { ports: ports(9_000) })] },
    ]),
  'PortConflict: a hundred ports, each with another holder': () => {
    const others = ports(9_000).map((each, i) => service(`${LONG}/${'o'.repeat(60)}${i}`, { ports: [each] }));
    return viewAfter([{ services: others }, { services: [...others, service(PATH, { ports: ports(9_000) })] }]);
  },
  'PoolNotAllowed: a pool that is not one of ten': () =>
    viewAfter([
      { services: [service(PATH, { annotations: { 'weir.dev/pool': 'x'.repeat(63) } })], policies: [POLICY] },
    ]),
  'HostNotAllowed: hosts of 250 letters that are not allowed': () =>
    viewAfter([{ services: [service(PATH, { ports: [port(443)], annotations: tlsFor(hosts) })], policies: [POLICY] }]),
  'HostConflict: hosts of 250 letters that others have': () => {
    const free = policy(LONG, { grants: { ...UNRESTRICTED_GRANTS, allowedHosts: ['*.example'] } });
    const other = service('a/web', { ports: [port(443)], annotations: tlsFor(hosts) });
    const mine = service(PATH, { ports: [port(443)], annotations: tlsFor(hosts) });
    return viewAfter([
      { services: [other], policies: [free] },
      { services: [other, mine], policies: [free] },
    ]);
  },
  'HostConflict: hosts of 250 letters, each with another owner in the namespace, for a served Service': () => {
    const free = policy(LONG, { grants: { ...UNRESTRICTED_GRANTS, allowedHosts: ['*.example'] } });
    const on443 = { ports: [port(443, { appProtocol: 'http' })] };
    const settings = { ...SETTINGS, secretAccess: { kind: 'cluster' } } as const;
    const secretName = 's'.repeat(253);
    const parts = { policies: [free], settings, secrets: [secret(`${LONG}/${secretName}`), secret(`${LONG}/other`)] };
    const others = hosts.map((host, i) =>
      service(`${LONG}/${'o'.repeat(60)}${i}`, {
        ...on443,
        annotations: { 'weir.dev/tls-secret': 'other', 'weir.dev/hosts': host },
      }),
    );
    const mine = (names: readonly string[]) =>
      service(PATH, {
        ...on443,
        annotations: { 'weir.dev/tls-secret': secretName, 'weir.dev/hosts': names.join(',') },
      });
    return viewAfter([
      { services: [...others, mine(['mine.example'])], ...parts },
      { services: [...others, mine(hosts)], ...parts },
    ]);
  },
  'InvalidAnnotation: a hundred wrong annotations': () => {
    const annotations = Object.fromEntries(
      ports(1).map((_, i) => [`weir.dev/${'a'.repeat(60)}${i}`, '😀'.repeat(100)]),
    );
    return viewAfter([{ services: [service(PATH)] }, { services: [service(PATH, { annotations })] }]);
  },
  'EndpointForbidden: a thousand endpoints that may not be used': () => {
    const addresses = Array.from({ length: 1_000 }, (_, i) => `2001:db8:aaaa:bbbb:cccc:dddd:eeee:${i.toString(16)}`);
    const settings = { ...SETTINGS, trust: { kind: 'pods', serviceCidrs: [] } } as const;
    return viewAfter([{ services: [service(PATH)], slices: [slice(PATH, addresses)], settings }]);
  },
  'TenantConflict: a tenant in dispute': () => {
    const label = `${'l'.repeat(60)}.${'l'.repeat(60)}.${'l'.repeat(60)}.${'l'.repeat(60)}.example/${LONG}`;
    const byLabel = policy(hostOf(0), { tenantFrom: { kind: 'label', label } });
    const parts = { namespaces: [namespace(LONG)], policies: [byLabel] };
    return viewAfter([{ services: [service(PATH)] }, { services: [service(PATH, { ports: ports(9_000) })], ...parts }]);
  },
  'NoProxy: sixteen silent nodes, and everything that degrades': () => {
    const served = { services: [service(PATH, { ports: ports(9_000), externalTrafficPolicy: 'Local' })] };
    return viewAfter([served], { isSilent: true });
  },
  'WaitingForProxy: sixteen nodes that have not answered': () =>
    viewAfter([{ services: [service(PATH)] }], { before: [] }),
  'BindFailed: sixteen nodes that cannot bind a hundred ports': () =>
    viewAfter([{ services: [service(PATH, { ports: ports(9_000) })] }], { error: 'cannot listen', before: [] }),
  'NoReadyEndpoints: everything that degrades, and the month is used up': () => {
    const served = { services: [service(PATH, { ports: ports(9_000), externalTrafficPolicy: 'Local' })] };
    const wish = { 'weir.dev/nodes': '16' };
    const more = service(PATH, { ports: ports(9_000), externalTrafficPolicy: 'Local', annotations: wish });
    const limited = policy(LONG, { limits: { services: 0 }, grants: { ...UNRESTRICTED_GRANTS, allowedPorts: [] } });
    const view = viewAfter([served, { services: [more], policies: [limited], nodes: NODES.slice(0, 3) }]);
    const notice = (message: string) => [{ reason: 'OverLimit', message }] as const;
    const exhausted = notice(`tenant "${LONG}" has used up its month, ${'and so on, '.repeat(10)}`);
    const refused = notice(
      limitRefusalMessage(
        { service: view.uid, minute: 29_000_000, reason: 'rate-limit', refused: 1e9, accepted: 1e9 },
        { service: { settings: null }, tenant: { policy: LONG, limits: { newConnectionsPerSecond: 1e9 } } },
      ),
    );
    return withNotices(view, {
      byTenant: new Map([[view.tenant ?? '', exhausted]]),
      byService: new Map([[view.uid, refused]]),
    });
  },
};

describe('no message exceeds 1,024 bytes or is cut off', () => {
  for (const [what, make] of Object.entries(CASES)) {
    test(what, () => {
      const { conditions } = make();
      const reasons = conditions.map(({ reason }) => reason);
      assert.ok(reasons.includes(what.split(':')[0] ?? ''), reasons.join());
      for (const { message } of conditions) {
        assert.ok(Buffer.byteLength(message) <= 1_024, `${Buffer.byteLength(message)}: ${message}`);
        assert.ok(!message.endsWith('…'), message);
      }
    });
  }
});
