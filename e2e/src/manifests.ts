// Objects as people write them, without what does not matter to a test.

interface LoadBalancerOptions {
  readonly annotations?: Readonly<Record<string, string>>;
}

export const namespaceManifest = (name: string, labels: Readonly<Record<string, string>> = {}): object => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name, labels },
});

/** Named `namespace/name`; `spec` stands in place of a selector for `app: name` and port 80. */
export const loadBalancer = (
  path: string,
  spec: object = {},
  { annotations = {} }: LoadBalancerOptions = {},
): object => {
  const [namespace_ = '', name = ''] = path.split('/');
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: namespace_, name, annotations },
    spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80, targetPort: 'main' }], ...spec },
  };
};

/** A slice that somebody wrote, of the Service `namespace/name`, with the one port of it. */
export const endpointSlice = (path: string, addresses: readonly string[], more: object = {}): object => {
  const [namespace_ = '', service = ''] = path.split('/');
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: namespace_, name: `${service}-by-hand`, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [{ name: '', port: 8080 }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
    ...more,
  };
};

/** For the namespaces with the label `team: name`. */
export const tenantPolicy = (name: string, spec: object): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'TenantPolicy',
  metadata: { name },
  spec: { namespaceSelector: { matchLabels: { team: name } }, nodesPerService: 3, ...spec },
});

export const suspension = (name: string, spec: object): object => ({
  apiVersion: 'weir.dev/v1alpha1',
  kind: 'Suspension',
  metadata: { name },
  spec,
});
