import type { Heartbeat } from '@weir/model';
import { diagnose } from '../../src/doctor/diagnose.ts';
import { type Fact, known, unknown } from '../../src/doctor/fact.ts';
import type { Facts, NodeFact, ServiceFact } from '../../src/doctor/facts.ts';
import type { CheckCode, Finding } from '../../src/doctor/finding.ts';

export const NOW: number = Date.parse('2026-07-01T12:00:00Z');
const TIMES = { askedAt: NOW - 10, answeredAt: NOW };

/** A cluster in which all is well, but for what a test changes. */
export function facts(change: Partial<Facts> = {}): Facts {
  return {
    now: NOW,
    fleet: 'weir',
    loadBalancerClass: 'weir.dev/weir',
    version: '1.2.3',
    server: server('v1.36.2'),
    customResources: known(['suspensions', 'suspensions/status', 'tenantpolicies', 'tenantusages']),
    serviceRanges: known(['10.96.0.0/16']),
    serviceCidrs: undefined,
    leases: known([lease()]),
    nodes: known([node('edge-1', '10.0.0.1'), node('edge-2', '10.0.0.2'), node('worker', '10.0.0.9', { labels: {} })]),
    services: known([service('web')]),
    policies: known([{ name: 'shop', pools: [] }]),
    redis: redis(),
    heartbeats: heard(beat('edge-1'), beat('edge-2')),
    host: { addresses: ['127.0.0.1'], kernelAdvice: [] },
    ...change,
  };
}

/** What one check says of them. */
export function found(code: CheckCode, change: Partial<Facts> = {}): Finding {
  const finding = diagnose(facts(change)).find((each) => each.code === code);
  if (finding === undefined) throw new Error(`no finding of ${code}`);
  return finding;
}

type Of<K extends keyof Facts> = Facts[K] extends Fact<infer T> ? T : never;

export function server(version: string, date: number | null = NOW - 1_000): Facts['server'] {
  return known({ server: 'https://10.0.0.1:6443', version, date: date ?? undefined, ...TIMES });
}

export function lease(change: Partial<Of<'leases'>[number]> = {}): Of<'leases'>[number] {
  return {
    namespace: 'weir-system',
    name: 'weir-controller-weir',
    holder: 'controller-a',
    renewedAt: NOW - 1_000,
    durationMs: 15_000,
    ...change,
  };
}

export function node(name: string, address: string, change: Partial<NodeFact> = {}): NodeFact {
  return {
    name,
    labels: { role: 'loadbalancer' },
    annotations: {},
    internalIPs: [address],
    podCIDRs: [],
    isCordoned: false,
    isReady: true,
    isDeleting: false,
    ...change,
  };
}

export function service(name: string, change: Partial<ServiceFact> = {}): ServiceFact {
  return {
    namespace: 'shop',
    name,
    loadBalancerClass: 'weir.dev/weir',
    ignored: false,
    pool: null,
    createdAt: NOW - 3_600_000,
    isDeleting: false,
    ports: [80],
    nodePorts: [],
    ingress: [{ ip: '10.0.0.1', ipMode: 'Proxy' }],
    hasWeirCondition: true,
    ...change,
  };
}

export function redis(change: Partial<Of<'redis'>> = {}): Facts['redis'] {
  return known({
    where: '10.0.0.5:6379',
    version: '7.2.4',
    role: 'primary',
    isLoading: false,
    evictionPolicy: 'noeviction',
    appendOnly: true,
    snapshots: true,
    isFailingToPersist: false,
    now: NOW - 5,
    ...TIMES,
    ...change,
  });
}

export function heard(...items: readonly Heartbeat[]): Facts['heartbeats'] {
  return known({ items, ...TIMES });
}

export function beat(node: string, change: Partial<Heartbeat> = {}): Heartbeat {
  return {
    node,
    life: 1,
    version: '1.2.3',
    startedAt: NOW - 60_000,
    draining: false,
    addresses: [],
    applied: { epoch: 1, revision: 1, id: 'x' },
    cutoffSequence: 0,
    listeners: [],
    workers: 1,
    connections: 0,
    sentAt: NOW - 500,
    hostAdvice: [],
    ...change,
  };
}

export const FAILED: Fact<never> = unknown('failed', 'it does not answer');
export const NOT_ASKED: Fact<never> = unknown('not-asked', 'nobody said where it is');
