import { serviceText } from '../service-text.ts';
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
    { name: `passing-${index}`, namespace: `passing-${index % 3}`, protocol: 'TCP', port },
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
