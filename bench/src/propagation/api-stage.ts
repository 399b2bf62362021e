// The real thing but for kubelets and pods: etcd, kube-apiserver, the controller as a process. In a network namespace.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KubeApi, loadKubeConfig } from '@weir/controller';
import { type ControlPlane, spawnProcess, startControlPlane, temporaryDirectory } from '@weir/testkit';
import { sameTime } from '../control/same-time.ts';
import { apiServerAddress, type BackendName, type Node, namespaceBackends, podNetwork, portOf } from './places.ts';
import type { Stage } from './stage.ts';

export type ApiOptions = {
  readonly redis: string;
  readonly fleet: string;
  readonly nodes: readonly Node[];
  readonly services: number;
  readonly backendPort: number;
};

const root = fileURLToPath(new URL('../../../', import.meta.url));
const namespace = 'bench';
const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;

export async function apiStage(options: ApiOptions): Promise<Stage> {
  const { nodes, services, backendPort } = options;
  await using cleanup = new AsyncDisposableStack();
  const cluster = cleanup.use(await startControlPlane({ host: apiServerAddress }));
  await prepare(cluster, options);
  const directory = cleanup.use(temporaryDirectory('propagation'));
  const policy = join(directory.path, 'default-policy.json');
  // Nobody runs pods here, so nobody would believe the endpoints.
  writeFileSync(policy, JSON.stringify({ nodesPerService: nodes.length, allowedEndpointCIDRs: [podNetwork] }));
  cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: ['--conditions=source', join(root, 'packages/controller/src/main.ts')],
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
    async move(service, to) {
      const beganAt = sameTime();
      const { endpoints } = sliceOf(service, { to, port: backendPort });
      const annotations = { 'endpoints.kubernetes.io/last-change-trigger-time': new Date().toISOString() };
      await api.request({
        method: 'PATCH',
        path: `${slices}/${nameOf(service)}`,
        contentType: 'application/merge-patch+json',
        body: { metadata: { annotations }, endpoints },
      });
      return { beganAt, writtenAt: sameTime() };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Nodes, Services and their slices are objects made by hand. */
async function prepare({ kubectl, apply }: ControlPlane, { nodes, services, backendPort }: ApiOptions): Promise<void> {
  const crds = join(root, 'charts/weir-crds/definitions');
  for (const file of readdirSync(crds)) await kubectl('apply', '-f', join(crds, file));
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
  await kubectl('create', 'namespace', namespace);
  for (const { name, address } of nodes) {
    await apply({ apiVersion: 'v1', kind: 'Node', metadata: { name, labels: { role: 'loadbalancer' } } });
    const status = { addresses: [{ type: 'InternalIP', address }] };
    await kubectl('patch', 'node', name, '--subresource=status', '-p', JSON.stringify({ status }));
  }
  const objects = Array.from({ length: services }, (_, index) => [
    serviceOf(index),
    sliceOf(index, { to: 'A', port: backendPort }),
  ]);
  await apply(...objects.flat());
}

/** Without selector, so that nobody else writes its slice. */
function serviceOf(index: number) {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { namespace, name: nameOf(index) },
    spec: {
      type: 'LoadBalancer',
      loadBalancerClass: 'weir.dev/weir',
      allocateLoadBalancerNodePorts: false,
      ports: [{ port: portOf(index) }],
    },
  };
}

function sliceOf(index: number, { to, port }: { readonly to: BackendName; readonly port: number }) {
  const labels = { 'kubernetes.io/service-name': nameOf(index) };
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { namespace, name: nameOf(index), labels },
    addressType: 'IPv4',
    ports: [{ name: '', port, protocol: 'TCP' }],
    endpoints: [{ addresses: [namespaceBackends[to]], conditions: { ready: true } }],
  };
}

function nameOf(index: number): string {
  return `web-${index}`;
}
