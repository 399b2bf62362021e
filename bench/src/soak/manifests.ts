import { endpointAddress, gameLimits, type ServiceName, services } from './services.ts';

/** One Service and its slice; `ready` are the indexes of the endpoints that it has now. */
export function manifestFor(
  name: ServiceName,
  { port, target, ready }: { readonly port: number; readonly target: number; readonly ready: readonly number[] },
): string {
  const { namespace, protocol, annotations } = services[name];
  return serviceText(
    { name, namespace, protocol, port, annotations },
    { target, addresses: ready.map(endpointAddress) },
  );
}

/** A Service that nobody visits: it comes and goes so that the table changes. */
export function passingManifest(index: number, { port, target }: { port: number; target: number }): string {
  return serviceText(
    { name: `passing-${index}`, namespace: `passing-${index % 3}`, protocol: 'TCP', port, annotations: {} },
    { target, addresses: [endpointAddress(index)] },
  );
}

export const policyManifest: string = `apiVersion: v1
kind: Namespace
metadata: {name: game, labels: {kubernetes.io/metadata.name: game}}
---
apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: {name: game}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: game}}
  limits: {${gameLimits}}
`;

type ServiceText = {
  readonly name: string;
  readonly namespace: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  readonly annotations: Readonly<Record<string, string>>;
};

function serviceText(
  { name, namespace, protocol, port, annotations }: ServiceText,
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
