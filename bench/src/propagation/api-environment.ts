// A cluster in a network namespace, without kubelets and pods: etcd, kube-apiserver, and Weir's controller as a process.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { KubeApi, loadKubeConfig } from '@weir/controller';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { type ControlPlane, startControlPlane } from '@weir/tools';
import { monotonicMs } from '../measure/monotonic-clock.ts';
import { REPOSITORY_ROOT } from '../report/run-metadata.ts';
import type { Environment } from './topology.ts';
import {
  API_SERVER_ADDRESS,
  type EndpointName,
  NAMESPACE_ENDPOINTS,
  type NodeAddress,
  POD_NETWORK,
  servicePort,
} from './topology.ts';

export type ApiEnvironmentOptions = {
  readonly redis: string;
  readonly fleet: string;
  readonly nodes: readonly NodeAddress[];
  readonly services: number;
  readonly backendPort: number;
};

const NAMESPACE = 'bench';
const SLICES_PATH = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;

export async function startApiEnvironment(options: ApiEnvironmentOptions): Promise<Environment> {
  const { nodes, services, backendPort } = options;
  await using cleanup = new AsyncDisposableStack();
  const cluster = cleanup.use(await startControlPlane({ host: API_SERVER_ADDRESS }));
  await createObjects(cluster, options);
  const directory = cleanup.use(temporaryDirectory('propagation'));
  const policy = join(directory.path, 'default-policy.json');
  // the policy allows the endpoints, because the cluster has no pods that would make the endpoints trusted
  writeFileSync(policy, JSON.stringify({ nodesPerService: nodes.length, allowedEndpointCIDRs: [POD_NETWORK] }));
  cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: ['--conditions=source', join(REPOSITORY_ROOT, 'packages/controller/src/main.ts')],
      env: {
        ...process.env,
        KUBECONFIG: cluster.kubeconfig,
        WEIR_FLEET: options.fleet,
        WEIR_REDIS_URL: options.redis,
        WEIR_ADMIN: 'off',
        WEIR_NAMESPACE: 'kube-system',
        WEIR_DEFAULT_TENANT_POLICY: policy,
        WEIR_LOG_LEVEL: 'error',
      },
      name: 'controller',
      mayExit: true,
    }),
  );
  const api = new KubeApi(loadKubeConfig(cluster.kubeconfig));
  cleanup.defer(() => api.close());
  const started = cleanup.move();
  return {
    nodes,
    services,
    async switchEndpoint(service, to) {
      const startedAt = monotonicMs();
      const { endpoints } = sliceObject(service, { to, port: backendPort });
      const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
      await api.request({
        method: 'PATCH',
        path: `${SLICES_PATH}/${serviceName(service)}`,
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations }, endpoints },
      });
      return { startedAt, writtenAt: monotonicMs() };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Creates the Services, and also nodes and EndpointSlices, because no kubelet and no EndpointSlice controller runs. */
async function createObjects(
  { kubectl, apply }: ControlPlane,
  { nodes, services, backendPort }: ApiEnvironmentOptions,
): Promise<void> {
  const crds = join(REPOSITORY_ROOT, 'charts/weir-crds/definitions');
  for (const file of readdirSync(crds)) await kubectl('apply', '-f', join(crds, file));
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
  await kubectl('create', 'namespace', NAMESPACE);
  for (const { name, address } of nodes) {
    await apply({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { role: 'loadbalancer' } } });
    const status = { addresses: [{ type: 'InternalIP', address }] };
    await kubectl('patch', 'node', name, '--subresource=status', '-p', JSON.stringify({ status }));
  }
  const objects = Array.from({ length: services }, (_, index) => [
    serviceObject(index),
    sliceObject(index, { to: 'A', port: backendPort }),
  ]);
  await apply(...objects.flat());
}

/** Returns a Service without a selector, so that no other controller writes EndpointSlices of the Service. */
function serviceObject(index: number) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace: NAMESPACE, name: serviceName(index) },
    spec: {
      type: 'LoadBalancer',
      loadBalancerClass: 'weir.dev/weir',
      allocateLoadBalancerNodePorts: false,
      ports: [{ port: servicePort(index) }],
    },
  };
}

function sliceObject(index: number, { to, port }: { readonly to: EndpointName; readonly port: number }) {
  const labels = { 'kubernetes.io/service-name': serviceName(index) };
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace: NAMESPACE, name: serviceName(index), labels },
    addressType: 'IPv4',
    ports: [{ name: '', port, protocol: 'TCP' }],
    endpoints: [{ addresses: [NAMESPACE_ENDPOINTS[to]], conditions: { ready: true } }],
  };
}

function serviceName(index: number): string {
  return `web-${index}`;
}
