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
import * as settings from './control-plane-flags.ts';

export type ControlPlaneOptions = {
  /** The address it serves on, of the network namespace that we are in. */
  readonly host?: string;
  /** Of the cluster IPs of Services; of both families: Services may be of both. Default 10.96.0.0/16. */
  readonly serviceCidrs?: readonly string[];
  readonly readyTimeoutMs?: number;
  /** Addresses and names, beside `host`, that the certificate of all its API servers is for. Default: those that it gives itself. */
  readonly certificateNames?: readonly string[];
  /** Default `made-by-hand`: objects that nothing keeps alive. `with-kubelets`: whose kubelet falls silent is unreachable. */
  readonly nodes?: settings.NodeSimulation;
  /** The namespace whose accounts' requests are noted; default: nobody's are. */
  readonly auditedNamespace?: string;
};

/** One of several on the same etcd. */
export type ApiServer = {
  readonly server: string;
  stop(options?: { signal?: NodeJS.Signals }): Promise<void>;
  /** As if its machine hung: it takes connections, and says nothing. It may be stopped by SIGKILL then. */
  freeze(): void;
  /** With the same address and port; resolves when it is ready. */
  start(): Promise<void>;
};

export type ControlPlane = AsyncDisposable & {
  readonly server: string;
  /** Path of a kubeconfig file for an administrator; certificates and token are in it. */
  readonly kubeconfig: string;
  /** Runs kubectl as the administrator and returns its stdout; fails with its stderr. */
  kubectl(...args: string[] | [...string[], { stdin: string }]): Promise<string>;
  /** Applies these objects, in their order. */
  apply(...objects: readonly object[]): Promise<void>;
  /** The API server away and back, with its data; the rest goes on. By SIGKILL: asked kindly, it waits long for its watches. */
  stopApiServer(options?: { signal?: NodeJS.Signals }): Promise<void>;
  startApiServer(): Promise<void>;
  /** A further one, on another address and the same port, which is ready. `certifiedFor` has to name the address. */
  addApiServer(host: string): Promise<ApiServer>;
  /** What accounts of the `audited` namespace were let do so far. */
  auditedRequests(): readonly AuditedRequest[];
  close(): Promise<void>;
};

/**
 * etcd, kube-apiserver and kube-controller-manager, nothing else: no kubelet, so nodes and pods are objects made by hand and pods
 * become ready by a status patch. EndpointSlices may not hold loopback addresses: see `insideNamespace`.
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
  const place: settings.ControlPlaneLayout = {
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
  const audit = auditedNamespace === undefined ? [] : settings.toFlags(auditFlags(directory.path, auditedNamespace));
  const startAt = async (at: string): Promise<SpawnedProcess> => {
    const started = await launch('kube-apiserver', [...settings.apiServerFlags({ ...place, host: at }), ...audit]);
    const ready = (): Promise<void> => assertReady(serverUrl(at, port), { pki, token });
    await eventually(ready, { timeoutMs: readyTimeoutMs, intervalMs: 50 });
    return started;
  };
  const apiServerAt = async (at: string): Promise<ApiServer> => {
    let process = await startAt(at);
    return {
      server: serverUrl(at, port),
      stop: async ({ signal = 'SIGKILL' } = {}) => void (await process.stop(signal)),
      freeze: () => process.signal('SIGSTOP'),
      start: async () => {
        process = await startAt(at);
      },
    };
  };
  const close = async (): Promise<void> => {
    await Promise.all(running.map((each) => each.stop('SIGKILL')));
    await directory.close();
  };
  const kubectl: ControlPlane['kubectl'] = (...all) => {
    const args: string[] = [];
    let stdin = '';
    for (const each of all) {
      if (typeof each === 'string') args.push(each);
      else stdin = each.stdin;
    }
    const env = { ...process.env, KUBECONFIG: kubeconfig, KUBECACHEDIR: join(directory.path, 'kubectl') };
    return runCommand(programPath('kubectl'), args, { env, stdin });
  };

  let apiServer: ApiServer;
  try {
    await launch('etcd', settings.etcdFlags(place));
    apiServer = await apiServerAt(host);
    writeFileSync(kubeconfig, settings.kubeconfigText({ server, token, certificate: readCertificate(pki) }), {
      mode: 0o600,
    });
    await launch('kube-controller-manager', settings.controllerManagerFlags({ ...place, kubeconfig, nodes }));
    // made by the controller manager, and no pod is admitted before it is there
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
    stopApiServer: (how) => apiServer.stop(how),
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

/** Where an API server looks for one before it makes its own. */
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

/** The API server makes its certificate when it starts, and signs it itself. */
function readCertificate(pki: string): string {
  return readFileSync(join(pki, 'apiserver.crt'), 'utf8');
}

function writeFrontProxyCertificates(directory: string): void {
  mkdirSync(directory);
  const authority = makeCertificate({ name: 'front-proxy-ca', isAuthority: true });
  const client = makeCertificate({ name: settings.FRONT_PROXY_NAME, issuer: authority, usage: 'client' });
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
    else reject(new Error(`the API server is not ready: HTTP ${response.statusCode}`));
  }).once('error', reject);
  await promise;
}
