export type ServiceManifestOptions = {
  readonly name: string;
  readonly namespace: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  /** Without `weir.dev/`. */
  readonly annotations?: Readonly<Record<string, string>>;
};

/** A Service without selector, and the one slice of its endpoints. */
export function serviceManifest(
  { name, namespace, protocol, port, annotations = {} }: ServiceManifestOptions,
  { target, addresses }: { readonly target: number; readonly addresses: readonly string[] },
): string {
  const noted = Object.entries(annotations).map(([key, value]) => `weir.dev/${key}: ${JSON.stringify(value)}`);
  const endpoints = addresses.map((address) => `{addresses: [${address}], conditions: {ready: true}}`);
  return `apiVersion: v1
kind: Service
metadata: {name: ${name}, namespace: ${namespace}, annotations: {${noted.join(', ')}}}
spec:
  type: LoadBalancer
  loadBalancerClass: weir.dev/weir
  ports: [{name: it, port: ${port}, targetPort: ${target}, protocol: ${protocol}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: ${name}-1, namespace: ${namespace}, labels: {kubernetes.io/service-name: ${name}}}
addressType: IPv4
ports: [{name: it, port: ${target}, protocol: ${protocol}}]
endpoints: [${endpoints.join(', ')}]
`;
}
