import { serviceManifest } from '../service-text.ts';
import { endpointAddress, SERVICES, type ServiceName, TENANT_LIMITS } from './services.ts';

/** One Service and its slice; `ready` are the indexes of the endpoints that it has now. */
export function soakServiceManifest(
  name: ServiceName,
  { port, target, ready }: { readonly port: number; readonly target: number; readonly ready: readonly number[] },
): string {
  const { namespace, protocol, annotations } = SERVICES[name];
  return serviceManifest(
    { name, namespace, protocol, port, annotations },
    { target, addresses: ready.map(endpointAddress) },
  );
}

/** A Service that nobody visits: it comes and goes so that the table changes. */
export function transientServiceManifest(index: number, { port, target }: { port: number; target: number }): string {
  return serviceManifest(
    { name: `passing-${index}`, namespace: `passing-${index % 3}`, protocol: 'TCP', port },
    { target, addresses: [endpointAddress(index)] },
  );
}

export const POLICY_MANIFEST: string = `apiVersion: v1
kind: Namespace
metadata: {name: game, labels: {kubernetes.io/metadata.name: game}}
---
apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: {name: game}
spec:
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: game}}
  limits: {${TENANT_LIMITS}}
`;
