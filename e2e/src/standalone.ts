// Runs `weir standalone` with manifests that the test writes.
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort, type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';

const WEIR_COMMAND = fileURLToPath(new URL('../../packages/cli/bin/weir.js', import.meta.url));

export interface Standalone extends AsyncDisposable {
  readonly process: SpawnedProcess;
  readonly port: number;
  /** Replaces the manifest file by a renamed new file, as editors do. */
  writeEndpoints(endpoints: readonly number[]): void;
  /** Runs `weir … -o json` and returns the parsed output. */
  weir<T>(...args: string[]): Promise<T>;
}

/** Starts `weir standalone`, which serves the Service `shop/web`. The endpoints are these ports of 127.0.0.1. */
export async function startStandalone(endpoints: readonly number[]): Promise<Standalone> {
  const directory = temporaryDirectory('standalone');
  const manifests = join(directory.path, 'manifests');
  mkdirSync(manifests);
  const port = await freePort();
  const writeEndpoints = (ports: readonly number[]): void => {
    const draft = join(directory.path, 'draft.yaml');
    writeFileSync(draft, manifestFor(port, ports));
    renameSync(draft, join(manifests, 'web.yaml'));
  };
  writeEndpoints(endpoints);
  const args = ['standalone', '-f', manifests, '--classless', '--console', '127.0.0.1:0', '--workers', '2'];
  const process_ = await spawnProcess({
    command: process.execPath,
    args: [WEIR_COMMAND, ...args],
    readyWhen: /^ready http/m,
  });
  const server = /^ready (\S+)/m.exec(process_.output())?.[1] ?? '';
  return {
    process: process_,
    port,
    writeEndpoints,
    async weir<T>(...command: string[]): Promise<T> {
      const run = await spawnProcess({
        command: process.execPath,
        args: [WEIR_COMMAND, ...command, '-o', 'json', '--server', server],
        mayExit: true,
      });
      const { code } = await run.exited;
      if (code !== 0) throw new Error(`weir ${command.join(' ')} exited with code ${code}: ${run.output()}`);
      return JSON.parse(run.stdout()) as T;
    },
    async [Symbol.asyncDispose]() {
      await process_.stop('SIGTERM');
      await directory.close();
    },
  };
}

/** Returns a manifest with one EndpointSlice per endpoint, because all endpoints of a slice share their port number. */
function manifestFor(port: number, endpoints: readonly number[]): string {
  const slices = endpoints.map(
    (endpoint) => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: web-${endpoint}, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ port: ${endpoint} }]
endpoints: [{ addresses: [127.0.0.1] }]
`,
  );
  return `apiVersion: v1
kind: Service
metadata: { name: web, namespace: shop }
spec: { type: LoadBalancer, ports: [{ port: ${port} }] }
${slices.join('')}`;
}
