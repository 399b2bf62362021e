// Starts each process of a fleet and scrapes its metrics over HTTP, as Prometheus does.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  connectClient,
  echoServer,
  eventually,
  freePort,
  httpBackend,
  type SpawnedProcess,
  spawnProcess,
  temporaryDirectory,
} from '@weir/testkit';
import { type Redis, startRedis } from '@weir/tools';

export interface ExposedMetric {
  readonly name: string;
  readonly type: string;
  /** The labels of one exposed series, without `le`; undefined if no series was exposed. */
  readonly labels: readonly string[] | undefined;
}

export type ProcessName = 'proxy' | 'controller' | 'console';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** The fleet name under which `weir standalone` publishes its table. */
const FLEET = 'standalone';

/** Returns the metrics of a proxy that has served and refused clients, a console, and a controller without an API server. */
export async function exposedMetrics(): Promise<Readonly<Record<ProcessName, readonly ExposedMetric[]>>> {
  await using redis = await startRedis();
  await using backend = await echoServer();
  await using web = await httpBackend();
  await using directory = temporaryDirectory('metrics');
  const [served, refused, http] = [await freePort(), await freePort(), await freePort()];
  await publishManifests(redis, directory.path, [
    manifest('web', served, backend.port),
    manifest('down', refused, await freePort()),
    manifest('http', http, web.port, 'http'),
    POLICY,
  ]);
  const kubeconfig = join(directory.path, 'kubeconfig');
  writeFileSync(kubeconfig, KUBECONFIG);
  const common = { WEIR_REDIS_URL: redis.url, WEIR_FLEET: FLEET };
  const [proxyAddress, consoleAddress, controllerAddress] = [await freePort(), await freePort(), await freePort()].map(
    local,
  );
  await using _proxy = await startProcess('proxy', {
    ...common,
    WEIR_NODE: 'local',
    WEIR_WORKERS: '1',
    WEIR_ADMIN: proxyAddress ?? '',
  });
  await using _console = await startProcess('console', { ...common, WEIR_CONSOLE: consoleAddress ?? '' });
  await using _controller = await startProcess('controller', {
    ...common,
    WEIR_ADMIN: controllerAddress ?? '',
    KUBECONFIG: kubeconfig,
  });
  await using _client = await connectClientWhenServed(served);
  await eventually(() => connectRefusedClient(refused), METRICS_WAIT);
  await (await fetch(`http://${local(http)}/`)).text();
  const proxy = await metricsOf(proxyAddress ?? '', ['weir_service_refused_total{', 'weir_worker_heap_bytes{']);
  return {
    proxy,
    console: await metricsOf(consoleAddress ?? '', ['weir_tenant_used{', 'weir_tenant_limit{']),
    controller: await metricsOf(controllerAddress ?? '', ['weir_controller_api_requests_total{']),
  };
}

const METRICS_WAIT = { timeoutMs: 60_000, intervalMs: 100 };
const local = (port: number): string => `127.0.0.1:${port}`;

/** Publishes the routing table of these manifests to Redis. */
async function publishManifests(redis: Redis, directory: string, manifests: readonly string[]): Promise<void> {
  const file = join(directory, 'manifests.yaml');
  writeFileSync(file, manifests.join('---\n'));
  const args = ['standalone', '-f', file, '--classless', '--console', 'off', '--redis', redis.url, '--workers', '1'];
  const standalone = await spawnProcess({
    command: process.execPath,
    args: [`${ROOT}packages/cli/bin/weir.js`, ...args],
    readyWhen: /^ready/m,
  });
  await standalone.stop('SIGTERM');
}

function startProcess(program: ProcessName, settings: Readonly<Record<string, string>>): Promise<SpawnedProcess> {
  return spawnProcess({
    command: process.execPath,
    args: ['--conditions=source', `${ROOT}packages/${program}/src/main.ts`],
    env: { ...process.env, ...settings },
    name: program,
  });
}

/** Waits until the Service is served, and connects a client that stays connected so that metrics of active connections have series. */
async function connectClientWhenServed(port: number): Promise<AsyncDisposable> {
  return eventually(async () => {
    const client = await connectClient({ port });
    await client.send('x');
    await client.take(1);
    return client;
  }, METRICS_WAIT);
}

async function connectRefusedClient(port: number): Promise<void> {
  await using client = await connectClient({ port });
  await client.ended;
}

/** Waits until series that begin with `wanted` exist, and returns all metrics. */
async function metricsOf(address: string, wanted: readonly string[]): Promise<readonly ExposedMetric[]> {
  let text = '';
  await eventually(async () => {
    text = await (await fetch(`http://${address}/metrics`)).text();
    const missing = wanted.filter((series) => !text.includes(`\n${series}`));
    if (missing.length > 0) throw new Error(`missing series ${missing.join(', ')} in\n${text}`);
  }, METRICS_WAIT);
  return [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name = '', type = '']) => ({
    name,
    type,
    labels: labelsOf(name, text),
  }));
}

function labelsOf(name: string, text: string): readonly string[] | undefined {
  const series = new RegExp(`^${name}(?:_bucket)?(\\{.*\\})? [^ ]+$`, 'm').exec(text);
  if (series === null) return undefined;
  return [...(series[1] ?? '').matchAll(/(\w+)="/g)].map(([, label = '']) => label).filter((label) => label !== 'le');
}

function manifest(name: string, port: number, endpoint: number, appProtocol = 'tcp'): string {
  return `apiVersion: v1
kind: Service
metadata: { name: ${name}, namespace: shop }
spec: { type: LoadBalancer, ports: [{ port: ${port}, appProtocol: ${appProtocol} }] }
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: ${name}-1, namespace: shop, labels: { kubernetes.io/service-name: ${name} } }
addressType: IPv4
ports: [{ port: ${endpoint} }]
endpoints: [{ addresses: [127.0.0.1] }]
`;
}

const POLICY = `apiVersion: weir.dev/v1alpha1
kind: TenantPolicy
metadata: { name: shop }
spec: { limits: { services: 5 } }
`;

/** A kubeconfig with the address of an API server at which nothing listens. */
const KUBECONFIG = `apiVersion: v1
kind: Config
clusters: [{ name: none, cluster: { server: "https://127.0.0.1:1" } }]
users: [{ name: none, user: { token: none } }]
contexts: [{ name: none, context: { cluster: none, user: none } }]
current-context: none
`;
