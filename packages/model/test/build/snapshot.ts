// Objects with sensible fields, so that a test names only what it is about.
import {
  DEFAULT_FLEET_SETTINGS,
  type NamespaceObject,
  type NodeObject,
  type PodObject,
  type SecretObject,
  type ServiceObject,
  type ServicePort,
  type SliceObject,
  type Snapshot,
  type SuspensionObject,
  type TenantPolicyObject,
  type TenantPolicySpec,
  UNRESTRICTED_POLICY,
} from '@weir/model';

export function snapshotOf(parts: Partial<Snapshot>): Snapshot {
  return {
    settings: DEFAULT_FLEET_SETTINGS,
    namespaces: [],
    nodes: [node('n1', '192.0.2.1')],
    services: [],
    slices: [],
    pods: [],
    policies: [],
    suspensions: [],
    problems: [],
    ...parts,
  };
}

export function node(name: string, ip: string, more: Partial<NodeObject> = {}): NodeObject {
  return {
    ...meta(name),
    labels: { role: 'loadbalancer' },
    internalIPs: [ip],
    externalIPs: [],
    unschedulable: false,
    ...more,
  };
}

/** `shop/web`, a Service of Weir's class on port 80. */
export function service(path: string, more: Partial<ServiceObject> = {}): ServiceObject {
  const [namespace = '', name = ''] = path.split('/');
  return {
    ...meta(name),
    uid: `uid-${namespace}-${name}`,
    namespace,
    type: 'LoadBalancer',
    loadBalancerClass: 'weir.dev/weir',
    ports: [port(80)],
    hasSelector: true,
    clientIpAffinitySeconds: null,
    sourceRanges: [],
    externalTrafficPolicy: 'Cluster',
    trafficDistribution: null,
    publishNotReadyAddresses: false,
    ipFamilies: [],
    publishedIPs: [],
    deleting: false,
    ...more,
  };
}

export function port(number: number, more: Partial<ServicePort> = {}): ServicePort {
  return { name: null, port: number, protocol: 'TCP', appProtocol: null, nodePort: null, ...more };
}

/** A slice of the Service `shop/web` with ready endpoints at the given addresses, all on one port. */
export function slice(path: string, addresses: readonly string[], more: Partial<SliceObject> = {}): SliceObject {
  const [namespace = '', name = ''] = path.split('/');
  return {
    ...meta(`${name}-1`),
    namespace,
    serviceName: name,
    addressType: 'IPv4',
    ports: [{ name: null, port: 8080, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({
      addresses: [address],
      zone: null,
      ready: true,
      serving: true,
      terminating: false,
    })),
    ...more,
  };
}

export function pod(path: string, ip: string, hostNetwork = false): PodObject {
  const [namespace = '', name = ''] = path.split('/');
  return { namespace, name, ips: [ip], hostNetwork };
}

/** With a certificate that is good until May 2030, and no CAs. */
export function secret(path: string, more: Partial<SecretObject> = {}): SecretObject {
  const [namespace = '', name = ''] = path.split('/');
  const certificate = {
    kind: 'good',
    chain: `chain of ${path}`,
    keyDigest: `digest of ${path}`,
    sealedKey: `key of ${path}`,
    notBefore: 0,
    notAfter: 1_903_910_400_000,
  } as const;
  return { namespace, name, certificate, authorities: null, ...more };
}

export function policy(name: string, spec: Partial<TenantPolicySpec>): TenantPolicyObject {
  return { ...meta(name), spec: { ...UNRESTRICTED_POLICY, ...spec } };
}

export function suspension(name: string, target: SuspensionObject['target']): SuspensionObject {
  return { ...meta(name), target, message: '', until: null, rule: null };
}

/** Selects the namespaces with the label `team: <value>`. */
export function team(value: string): TenantPolicySpec['namespaceSelector'] {
  return { matchLabels: { team: value }, matchExpressions: [] };
}

export function namespace(name: string, labels: Record<string, string> = {}): Snapshot['namespaces'][number] {
  return { ...meta(name), labels };
}

function meta(name: string): NamespaceObject {
  return { uid: `uid-${name}`, name, labels: {}, annotations: {}, createdAt: null };
}
