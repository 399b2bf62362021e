import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TemporaryDirectory, temporaryDirectory } from '@weir/testkit';
import { stringify } from 'yaml';

export interface ManifestDirectory extends TemporaryDirectory {
  write(name: string, ...objects: readonly unknown[]): void;
  /** As it stands: for mistakes. */
  writeText(name: string, text: string): void;
  remove(name: string): void;
}

/** A directory of manifests that a test writes into. */
export function manifestDirectory(): ManifestDirectory {
  const directory = temporaryDirectory('manifests');
  const at = (name: string): string => join(directory.path, name);
  const writeText = (name: string, text: string): void => {
    mkdirSync(join(at(name), '..'), { recursive: true });
    writeFileSync(at(name), text);
  };
  return {
    ...directory,
    write: (name, ...objects) => writeText(name, objects.map((object) => stringify(object)).join('---\n')),
    writeText,
    remove: (name) => rmSync(at(name)),
  };
}

export interface ServiceOptions {
  readonly namespace?: string;
  readonly port?: number;
  readonly loadBalancerClass?: string | null;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** A Service as a tenant writes it: `named('web')`, in namespace `shop`, on port 8080. */
export function service(name: string, options: ServiceOptions = {}): unknown {
  const { namespace = 'shop', port = 8080, loadBalancerClass = 'weir.dev/weir', annotations = {} } = options;
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, annotations },
    spec: {
      type: 'LoadBalancer',
      ...(loadBalancerClass === null ? {} : { loadBalancerClass }),
      selector: { app: name },
      ports: [{ name: 'main', port, targetPort: 'main' }],
    },
  };
}

/** The endpoints of a Service, by hand. */
export function endpointSlice(
  name: string,
  port: number,
  options: { namespace?: string; addresses?: string[] } = {},
): unknown {
  const { namespace = 'shop', addresses = ['127.0.0.1'] } = options;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'main', port, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address] })),
  };
}

/** One tenant per namespace, with limits. */
export function tenantPolicy(name: string, limits: Readonly<Record<string, unknown>>): unknown {
  return {
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'TenantPolicy',
    metadata: { name },
    spec: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } }, limits },
  };
}

export function suspension(name: string, tenant: string, message = 'stop'): unknown {
  return {
    apiVersion: 'weir.dev/v1alpha1',
    kind: 'Suspension',
    metadata: { name },
    spec: { target: { type: 'Tenant', tenant }, message },
  };
}
