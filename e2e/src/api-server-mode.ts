// Runs `weir standalone` in front of the API servers of a cluster, as in docs/api-server.md, with the files of
// docs/examples/api-server.
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import type { ControlPlane } from '@weir/tools';
import { parse, stringify } from 'yaml';

const EXAMPLES = fileURLToPath(new URL('../../docs/examples/api-server/', import.meta.url));
const WEIR_COMMAND = fileURLToPath(new URL('../../packages/cli/bin/weir.js', import.meta.url));

/** The address at which every program on the node reaches the API servers. */
export const LOCAL_API_SERVER = 'https://127.0.0.1:7443';

export interface ApiServerMode extends AsyncDisposable {
  /** The path of an administrator's kubeconfig for 127.0.0.1:7443. */
  readonly kubeconfig: string;
  /** The administrator's credentials. */
  readonly credentials: { readonly ca: string; readonly token: string };
  /** Returns the API server addresses that the state directory of Weir contains. */
  storedAddresses(): readonly string[];
  output(): string;
  /** Replaces the token with which Weir authenticates to the API servers. */
  setToken(token: string): void;
  start(): Promise<void>;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Writes the files that Weir needs, without starting Weir. `addresses` are the API servers listed in the settings file. */
export function prepareApiServerMode(cluster: ControlPlane, addresses: readonly string[]): ApiServerMode {
  const directory = temporaryDirectory('api-server-mode');
  const settings = join(directory.path, 'settings');
  const state = join(directory.path, 'state');
  const kubeconfig = join(directory.path, 'admin.conf');
  mkdirSync(settings);
  writeEndpoints(settings, addresses, Number(new URL(cluster.server).port));
  const admin = parse(readFileSync(cluster.kubeconfig, 'utf8'));
  const data: string = admin.clusters[0].cluster['certificate-authority-data'];
  const ca = Buffer.from(data, 'base64').toString();
  admin.clusters[0].cluster.server = LOCAL_API_SERVER;
  writeFileSync(kubeconfig, stringify(admin));
  const setToken = (token: string): void => {
    admin.users[0].user.token = token;
    writeFileSync(join(settings, 'kubeconfig'), stringify(admin));
  };
  const token: string = admin.users[0].user.token;
  let running: SpawnedProcess | undefined;
  let earlierOutput = '';
  const stop = async (signal: NodeJS.Signals = 'SIGTERM'): Promise<void> => {
    await running?.stop(signal);
    earlierOutput += running?.output() ?? '';
    running = undefined;
  };
  return {
    kubeconfig,
    credentials: { ca, token },
    storedAddresses() {
      const path = join(state, 'api-server-endpoints.json');
      const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
      return [...text.matchAll(/"(10\.[\d.]+)"/g)].map(([, address = '']) => address).sort();
    },
    output: () => earlierOutput + (running?.output() ?? ''),
    setToken,
    async start() {
      const options = [`--filename=${settings}`, `--kubeconfig=${join(settings, 'kubeconfig')}`, `--state=${state}`];
      const args = [WEIR_COMMAND, 'standalone', ...options, '--console=off', '--workers=1'];
      running = await spawnProcess({ command: process.execPath, args, readyWhen: /^ready$/m });
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop();
      await directory.close();
    },
  };
}

/** Writes the manifest `endpoints.yaml` of the docs with other addresses and another port. */
function writeEndpoints(settings: string, addresses: readonly string[], port: number): void {
  const path = join(settings, 'endpoints.yaml');
  copyFileSync(join(EXAMPLES, 'endpoints.yaml'), path);
  const text = readFileSync(path, 'utf8');
  const [head = ''] = text.split('endpoints:\n');
  const endpoints = addresses.map((address) => `  - addresses: [${address}]\n`).join('');
  writeFileSync(path, `${head.replace('port: 6443', `port: ${port}`)}endpoints:\n${endpoints}`);
}
