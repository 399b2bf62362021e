import type { Heartbeat } from '@weir/model';
import { diagnose } from '../../src/doctor/diagnose.ts';
import { type Fact, knownFact, unknownFact } from '../../src/doctor/fact.ts';
import type { Facts, NodeFact, ServiceFact } from '../../src/doctor/facts.ts';
import type { CheckCode, Finding } from '../../src/doctor/finding.ts';

export const NOW: number = Date.parse('2026-07-01T12:00:00Z');
const REQUEST_TIMES = { askedAt: NOW - 10, answeredAt: NOW };

/** A cluster in which all is well, but for what a test changes. */
export function healthyFacts(change: Partial<Facts> = {}): Facts {
  return {
    now: NOW,
    fleet: 'weir',
    loadBalancerClass: 'weir.dev/weir',
    version: '1.2.3',
    server: server('v1.36.2'),
    customResources: knownFact(['suspensions', 'suspensions/status', 'tenantpolicies', 'tenantusages']),
    serviceRanges: knownFact(['10.96.0.0/16']),
    serviceCidrs: undefined,
    leases: knownFact([lease()]),
    nodes: knownFact([
      node('edge-1', '10.0.0.1'),
      node('edge-2', '10.0.0.2'),
      node('worker', '10.0.0.9', { labels: {} }),
    ]),
    services: knownFact([service('web')]),
    policies: knownFact([{ name: 'shop', pools: [] }]),
    redis: redis(),
    heartbeats: heartbeats(heartbeat('edge-1'), heartbeat('edge-2')),
    host: { addresses: ['127.0.0.1'], kernelWarnings: [] },
    ...change,
  };
}

/** What one check says of them. */
export function findingFor(code: CheckCode, change: Partial<Facts> = {}): Finding {
  const finding = diagnose(healthyFacts(change)).find((each) => each.code === code);
  if (finding === undefined) throw new Error(`no finding of ${code}`);
  return finding;
}

type KnownValue<K extends keyof Facts> = Facts[K] extends Fact<infer T> ? T : never;

export function server(version: string, date: number | null = NOW - 1_000): Facts['server'] {
  return knownFact({ server: 'https://10.0.0.1:6443', version, date: date ?? undefined, ...REQUEST_TIMES });
}

export function lease(change: Partial<KnownValue<'leases'>[number]> = {}): KnownValue<'leases'>[number] {
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

export function redis(change: Partial<KnownValue<'redis'>> = {}): Facts['redis'] {
  return knownFact({
    where: '10.0.0.5:6379',
    version: '7.2.4',
    role: 'primary',
    isLoading: false,
    evictionPolicy: 'noeviction',
    appendOnly: true,
    snapshots: true,
    isFailingToPersist: false,
    now: NOW - 5,
    ...REQUEST_TIMES,
    ...change,
  });
}

export function heartbeats(...items: readonly Heartbeat[]): Facts['heartbeats'] {
  return knownFact({ items, ...REQUEST_TIMES });
}

export function heartbeat(node: string, change: Partial<Heartbeat> = {}): Heartbeat {
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

export const FAILED: Fact<never> = unknownFact('failed', 'it does not answer');
export const NOT_ASKED: Fact<never> = unknownFact('not-asked', 'nobody said where it is');
