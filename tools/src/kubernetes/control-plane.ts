import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { isIP } from 'node:net';
import { join } from 'node:path';
import {
  eventually,
  freePort,
  makeCertificate,
  type SpawnedProcess,
  spawnProcess,
  temporaryDirectory,
} from '@weir/testkit';
import { programPath } from '../programs/require-program.ts';
import { runCommand } from '../programs/run-command.ts';
import { type AuditedRequest, auditedRequests, auditFlags } from './audit.ts';
import {
  apiServerFlags,
  type ControlPlaneLayout,
  controllerManagerFlags,
  etcdFlags,
  FRONT_PROXY_NAME,
  kubeconfigText,
  type NodeSimulation,
  toFlags,
} from './control-plane-flags.ts';

export type ControlPlaneOptions = {
  /** Address on which the API server listens, in the current network namespace. */
  readonly host?: string;
  /** Ranges of cluster IPs of one or both IP families; default 10.96.0.0/16. */
  readonly serviceCidrs?: readonly string[];
  readonly readyTimeoutMs?: number;
  /**
   * Names and addresses in the certificate of all API servers, in addition to `host`. Default: the API server generates a certificate
   * and chooses the names.
   */
  readonly certificateNames?: readonly string[];
  /**
   * `made-by-hand` (default): tests create node objects that have no kubelet. `with-kubelets`: a node becomes unreachable when its
   * kubelet stops reporting.
   */
  readonly nodes?: NodeSimulation;
  /** Namespace in which the requests of all service accounts are recorded; default: none. */
  readonly auditedNamespace?: string;
};

/** One API server of a control plane. All API servers of a control plane use the same etcd. */
export type ApiServer = {
  readonly server: string;
  stop(options?: { signal?: NodeJS.Signals }): Promise<void>;
  /** Stops the process with SIGSTOP: the kernel accepts connections, but no request is answered. Only SIGKILL ends a stopped process. */
  freeze(): void;
  /** Starts on the same address and port; resolves when the API server is ready. */
  start(): Promise<void>;
};

export type ControlPlane = AsyncDisposable & {
  readonly server: string;
  /** Path of a kubeconfig file with an administrator's token. */
  readonly kubeconfig: string;
  /** Runs kubectl as administrator and returns its stdout. Throws an error with its stderr if kubectl fails. */
  kubectl(...args: string[] | [...string[], { stdin: string }]): Promise<string>;
  /** Applies these objects in order. */
  apply(...objects: readonly object[]): Promise<void>;
  /** Stops the first API server, by default with SIGKILL, because a graceful stop waits for watches. Etcd keeps the data. */
  stopApiServer(options?: { signal?: NodeJS.Signals }): Promise<void>;
  startApiServer(): Promise<void>;
  /** Starts another API server on this address and the port of the first API server. `certificateNames` must contain the address. */
  addApiServer(host: string): Promise<ApiServer>;
  /** Returns the authorized requests of service accounts in `auditedNamespace` so far. */
  auditedRequests(): readonly AuditedRequest[];
  close(): Promise<void>;
};

/**
 * Starts etcd, kube-apiserver and kube-controller-manager without kubelets. Tests create nodes and pods as objects, and make pods ready
 * by patching their status. Tests with endpoints need `insideNamespace`, because EndpointSlices must not contain loopback addresses.
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const {
    host = '127.0.0.1',
    serviceCidrs = ['10.96.0.0/16'],
    readyTimeoutMs = 60_000,
    nodes = 'made-by-hand',
    certificateNames,
    auditedNamespace,
  } = options;
  const directory = temporaryDirectory('control-plane');
  const pki = join(directory.path, 'pki');
  const token = randomBytes(16).toString('hex');
  const [etcdPort, peerPort, port] = await threeFreePorts(host);
  const layout: ControlPlaneLayout = {
    directory: directory.path,
    pki,
    host,
    port,
    etcdPort,
    peerPort,
    serviceCidrs,
  };
  const server = serverUrl(host, port);
  const kubeconfig = join(directory.path, 'kubeconfig');
  const running: SpawnedProcess[] = [];

  writeFileSync(join(directory.path, 'tokens.csv'), `${token},admin,admin,"system:masters"\n`, { mode: 0o600 });
  writeFileSync(join(directory.path, 'service-accounts.key'), serviceAccountKey(), { mode: 0o600 });
  writeFrontProxyCertificates(join(directory.path, 'front-proxy'));
  if (certificateNames !== undefined) writeCertificate(pki, [host, ...certificateNames]);

  const launch = async (
    name: 'etcd' | 'kube-apiserver' | 'kube-controller-manager',
    args: string[],
  ): Promise<SpawnedProcess> => {
    const process = await spawnProcess({ command: programPath(name), name, args });
    running.push(process);
    return process;
  };
  const audit = auditedNamespace === undefined ? [] : toFlags(auditFlags(directory.path, auditedNamespace));
  const startApiServerAt = async (address: string): Promise<SpawnedProcess> => {
    const started = await launch('kube-apiserver', [...apiServerFlags({ ...layout, host: address }), ...audit]);
    const ready = (): Promise<void> => assertReady(serverUrl(address, port), { pki, token });
    await eventually(ready, { timeoutMs: readyTimeoutMs, intervalMs: 50 });
    return started;
  };
  const apiServerAt = async (address: string): Promise<ApiServer> => {
    let process = await startApiServerAt(address);
    return {
      server: serverUrl(address, port),
      stop: async ({ signal = 'SIGKILL' } = {}) => void (await process.stop(signal)),
      freeze: () => process.signal('SIGSTOP'),
      start: async () => {
        process = await startApiServerAt(address);
      },
    };
  };
  const close = async (): Promise<void> => {
    await Promise.all(running.map((each) => each.stop('SIGKILL')));
    await directory.close();
  };
  const kubectl: ControlPlane['kubectl'] = (...words) => {
    const args: string[] = [];
    let stdin = '';
    for (const word of words) {
      if (typeof word === 'string') args.push(word);
      else stdin = word.stdin;
    }
    const env = { ...process.env, KUBECONFIG: kubeconfig, KUBECACHEDIR: join(directory.path, 'kubectl') };
    return runCommand(programPath('kubectl'), args, { env, stdin });
  };

  let apiServer: ApiServer;
  try {
    await launch('etcd', etcdFlags(layout));
    apiServer = await apiServerAt(host);
    writeFileSync(kubeconfig, kubeconfigText({ server, token, certificate: readCertificate(pki) }), {
      mode: 0o600,
    });
    await launch('kube-controller-manager', controllerManagerFlags({ ...layout, kubeconfig, nodes }));
    // The API server admits no pod before the controller manager has created this service account.
    await eventually(() => kubectl('get', 'serviceaccount', 'default'), { timeoutMs: readyTimeoutMs, intervalMs: 50 });
  } catch (error) {
    await close();
    throw error;
  }

  return {
    server,
    kubeconfig,
    kubectl,
    async apply(...items) {
      const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
      await kubectl('apply', '-f', '-', { stdin });
    },
    stopApiServer: (stopOptions) => apiServer.stop(stopOptions),
    startApiServer: () => apiServer.start(),
    addApiServer: apiServerAt,
    auditedRequests: () => auditedRequests(directory.path),
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function threeFreePorts(host: string): Promise<[number, number, number]> {
  const ports = new Set<number>();
  while (ports.size < 2) ports.add(await freePort());
  while (ports.size < 3) ports.add(await freePort(host));
  const [first = 0, second = 0, third = 0] = ports;
  return [first, second, third];
}

function serverUrl(host: string, port: number): string {
  return `https://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** Writes a certificate to the path where the API server would otherwise generate one. */
function writeCertificate(pki: string, names: readonly string[]): void {
  const { certificate, key } = makeCertificate({ name: 'kube-apiserver', names });
  mkdirSync(pki);
  writeFileSync(join(pki, 'apiserver.crt'), certificate);
  writeFileSync(join(pki, 'apiserver.key'), key, { mode: 0o600 });
}

function serviceAccountKey(): string {
  return generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs1', format: 'pem' },
  }).privateKey;
}

/** Returns the certificate of the API server. The API server generates the certificate when it starts, unless the files exist. */
function readCertificate(pki: string): string {
  return readFileSync(join(pki, 'apiserver.crt'), 'utf8');
}

function writeFrontProxyCertificates(directory: string): void {
  mkdirSync(directory);
  const authority = makeCertificate({ name: 'front-proxy-ca', isAuthority: true });
  const client = makeCertificate({ name: FRONT_PROXY_NAME, issuer: authority, usage: 'client' });
  writeFileSync(join(directory, 'ca.crt'), authority.certificate);
  writeFileSync(join(directory, 'client.crt'), client.chain);
  writeFileSync(join(directory, 'client.key'), client.key, { mode: 0o600 });
}

async function assertReady(server: string, { pki, token }: { pki: string; token: string }): Promise<void> {
  const ca = readCertificate(pki);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  get(`${server}/readyz`, { ca, headers: { authorization: `Bearer ${token}` }, agent: false }, (response) => {
    response.resume();
    if (response.statusCode === 200) resolve();
    else reject(new Error(`the API server is not ready: /readyz returned HTTP ${response.statusCode}`));
  }).once('error', reject);
  await promise;
}

/** Waits until the API server serves all applied custom resources, at most 30 s for each step. */
export async function waitForCustomResources({ kubectl }: Pick<ControlPlane, 'kubectl'>): Promise<void> {
  // The second command would fail on a definition that has no conditions yet, instead of waiting for them.
  await kubectl('wait', '--for=jsonpath={.status.conditions}', 'crd', '--all', '--timeout=30s');
  await kubectl('wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s');
}
