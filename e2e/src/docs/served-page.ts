// Serves the manifests of a page with `weir standalone`, at the ports that the page names.
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import type { Server as HttpServer } from 'node:http';
import type { Http2Server } from 'node:http2';
import type { Server as HttpsServer } from 'node:https';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { parseAllDocuments } from 'yaml';

const WEIR_COMMAND = fileURLToPath(new URL('../../../packages/cli/bin/weir.js', import.meta.url));

export interface ServedPage extends AsyncDisposable {
  readonly process: SpawnedProcess;
}

export interface PageOptions {
  /** The manifests of the page, unchanged. */
  readonly manifests: readonly string[];
  /** Objects that the manifests need, such as Secrets. */
  readonly objects?: readonly object[];
  /** The address of the pod of each Service, by the Service's name. */
  readonly pods: Readonly<Record<string, string>>;
  /** Arguments of `weir standalone`. */
  readonly args?: readonly string[];
}

/** Starts `weir standalone` at 127.0.0.1. Resolves when all Services are served. */
export async function servePage({ manifests, objects = [], pods, args = [] }: PageOptions): Promise<ServedPage> {
  const directory = temporaryDirectory('page');
  const services = manifests.flatMap(servicesIn);
  const slices = services.flatMap((service) => sliceFor(service, pods[service.metadata.name]));
  const texts = [...manifests, ...[...objects, ...slices].map((object) => JSON.stringify(object))];
  for (const [index, text] of texts.entries()) writeFileSync(join(directory.path, `${index}.yaml`), text);
  const process_ = await spawnProcess({
    command: process.execPath,
    args: [WEIR_COMMAND, 'standalone', '-f', directory.path, '--workers', '1', '--console', 'off', ...args],
    readyWhen: /^ready/m,
  });
  return {
    process: process_,
    async [Symbol.asyncDispose]() {
      await process_.stop('SIGTERM');
      await directory.close();
    },
  };
}

interface ServiceManifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: { readonly ports: readonly ServicePort[] };
}

interface ServicePort {
  readonly name: string;
  readonly port: number;
  readonly targetPort?: number;
}

function servicesIn(manifest: string): readonly ServiceManifest[] {
  const objects = parseAllDocuments(manifest).map((document) => document.toJS() as ServiceManifest);
  return objects.filter(({ kind }) => kind === 'Service');
}

/** Returns the EndpointSlice that Kubernetes would make for a pod of the Service. A Service without a pod has none. */
function sliceFor({ metadata: { name, namespace }, spec }: ServiceManifest, address: string | undefined): object[] {
  if (address === undefined) return [];
  return [
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: `${name}-1`, namespace, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: spec.ports.map(({ name: port, port: number, targetPort = number }) => ({ name: port, port: targetPort })),
      endpoints: [{ addresses: [address] }],
    },
  ];
}

/** Lets the server of a pod listen, and closes the server with all of its connections at the end. */
export async function startPod(
  server: HttpServer | HttpsServer | Http2Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<AsyncDisposable> {
  const stopping = new AbortController();
  server.on('connection', (socket) => {
    socket.on('error', () => socket.destroy());
    stopping.signal.addEventListener('abort', () => socket.destroy());
  });
  server.listen({ host, port });
  await once(server, 'listening');
  return {
    async [Symbol.asyncDispose]() {
      const closed = once(server, 'close');
      server.close();
      stopping.abort();
      await closed;
    },
  };
}
