// Objects as the API server gives them: it has checked their types, so absent fields are all that has to be minded.
import type { LeaseFact, NodeFact, PolicyFact, ServiceFact } from '../facts.ts';

interface RawMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
}

interface RawCondition {
  readonly type: string;
  readonly status: string;
}

interface RawNode {
  readonly metadata: RawMetadata;
  readonly spec?: { readonly unschedulable?: boolean; readonly podCIDR?: string; readonly podCIDRs?: string[] };
  readonly status?: { readonly addresses?: { type: string; address: string }[]; readonly conditions?: RawCondition[] };
}

export function readNode(raw: unknown): NodeFact {
  const { metadata, spec = {}, status = {} } = raw as RawNode;
  const ready = (status.conditions ?? []).find(({ type }) => type === 'Ready');
  return {
    name: metadata.name,
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
    internalIPs: (status.addresses ?? []).filter(({ type }) => type === 'InternalIP').map(({ address }) => address),
    podCIDRs: spec.podCIDRs ?? (spec.podCIDR === undefined ? [] : [spec.podCIDR]),
    isCordoned: spec.unschedulable === true,
    isReady: ready?.status === 'True',
    isDeleting: metadata.deletionTimestamp !== undefined,
  };
}

interface RawService {
  readonly metadata: RawMetadata;
  readonly spec: {
    readonly type?: string;
    readonly loadBalancerClass?: string;
    readonly ports?: { readonly port: number; readonly nodePort?: number }[];
  };
  readonly status?: {
    readonly conditions?: RawCondition[];
    readonly loadBalancer?: { readonly ingress?: { readonly ip?: string; readonly ipMode?: string }[] };
  };
}

/** Undefined of one that is no load balancer. */
export function readService(raw: unknown): ServiceFact | undefined {
  const { metadata, spec, status = {} } = raw as RawService;
  if (spec.type !== 'LoadBalancer') return undefined;
  const { namespace = '', name, annotations = {}, creationTimestamp, deletionTimestamp } = metadata;
  return {
    namespace,
    name,
    loadBalancerClass: spec.loadBalancerClass ?? null,
    ignored: annotations['weir.dev/ignore'] === 'true',
    pool: annotations['weir.dev/pool'] ?? null,
    createdAt: parseTime(creationTimestamp),
    isDeleting: deletionTimestamp !== undefined,
    ports: (spec.ports ?? []).map(({ port }) => port),
    nodePorts: (spec.ports ?? []).flatMap(({ nodePort = 0 }) => (nodePort > 0 ? [nodePort] : [])),
    ingress: (status.loadBalancer?.ingress ?? []).map(({ ip = null, ipMode = null }) => ({ ip, ipMode })),
    hasWeirCondition: (status.conditions ?? []).some(({ type }) => type.startsWith('weir.dev/')),
  };
}

interface RawLease {
  readonly metadata: RawMetadata;
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly renewTime?: string;
    readonly leaseDurationSeconds?: number;
  };
}

/** Undefined of one that is not of a controller of ours: each node has one, too. */
export function readLease(raw: unknown): LeaseFact | undefined {
  const { metadata, spec = {} } = raw as RawLease;
  if (!metadata.name.startsWith('weir-controller-')) return undefined;
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    holder: spec.holderIdentity || null,
    renewedAt: parseTime(spec.renewTime),
    durationMs: (spec.leaseDurationSeconds ?? 0) * 1_000,
  };
}

export function readServiceRanges(raw: unknown): readonly string[] {
  return (raw as { readonly spec?: { readonly cidrs?: string[] } }).spec?.cidrs ?? [];
}

export function readPolicy(raw: unknown): PolicyFact {
  const { metadata, spec = {} } = raw as {
    readonly metadata: RawMetadata;
    readonly spec?: { readonly pools?: string[] };
  };
  return { name: metadata.name, pools: spec.pools ?? [] };
}

function parseTime(text: string | undefined): number | null {
  const ms = Date.parse(text ?? '');
  return Number.isNaN(ms) ? null : ms;
}
