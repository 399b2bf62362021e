import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { pid } from 'node:process';
import {
  type ProblemChangeSet,
  type RunningConsole,
  startConsole,
  storeSuspensionWriter,
  watchProblems,
} from '@weir/console';
import {
  type CommandLineNode,
  type Controller,
  type DirectorySource,
  openDirectorySource,
  openLiveEndpointsSource,
  ReloadingKubeApi,
  type Source,
  startController,
} from '@weir/controller';
import {
  DEFAULT_TRANSPORT,
  kernelWarnings,
  startProxy,
  type TlsKind,
  type TransportKind,
  trustedProxyWarnings,
} from '@weir/proxy';
import {
  systemClock as clock,
  type HostPort,
  type LineOutput,
  type Logger,
  type Part,
  Secret,
  startParts,
} from '@weir/runtime';
import type { RedisAccess, Store } from '@weir/store';
import { version } from '../version.ts';
import { type FleetOptions, fleetSettingsFor, resolveFleetOptions } from './directory-settings.ts';
import { FleetProxies, waitUntilServing } from './fleet-proxies.ts';
import { resolveFleetSecret } from './fleet-secret.ts';
import { openStore, STANDALONE_FLEET } from './open-store.ts';
import { untilAborted } from './waiting.ts';

// Runs the controller, the proxies and the console in one process with one store. In a cluster each component runs in a separate process.

export interface StandaloneOptions extends Partial<FleetOptions> {
  /** Files and directories of manifests. */
  readonly filename: readonly string[];
  /** The text of standard input, if `filename` contains `-`. */
  readonly stdin?: string | undefined;
  readonly node?: readonly CommandLineNode[];
  readonly console: HostPort | 'off';
  /** Number of worker threads of each proxy. */
  readonly workers?: number;
  /** CIDRs of load balancers whose connections must begin with a PROXY header. */
  readonly trustProxyProtocol?: readonly string[];
  /** CIDRs of HTTP proxies whose X-Forwarded-* fields are believed. */
  readonly trustForwarded?: readonly string[];
  /** Whether pods get Forwarded (RFC 7239) beside X-Forwarded-For. */
  readonly writeForwarded?: boolean;
  /** Whether the proxies count the clients of each tenant with the most bytes and connections. */
  readonly topClients?: boolean;
  readonly state?: string;
  readonly redis?: RedisAccess | undefined;
  /** Kubeconfig of an API server. The EndpointSlices of this server replace the EndpointSlices of the manifests. */
  readonly kubeconfig?: string;
  /** The value of WEIR_FLEET_SECRET, not validated yet. */
  readonly fleetSecret?: string | undefined;
  readonly transport?: TransportKind | undefined;
  readonly tls?: TlsKind | undefined;
  readonly log: Logger;
  /** Takes the lines of access logs; by default the standard output. */
  readonly accessLogOutput?: LineOutput;
  /** Aborts the start. */
  readonly signal: AbortSignal;
  readonly onProblemChanges: (changes: ProblemChangeSet) => void;
  /** Called with each warning about this host, trusted networks or Secrets. */
  readonly onWarning?: (warning: string) => void;
}

export interface RunningStandalone {
  readonly consoleUrl: string | undefined;
  /** Rejects if a component fails. */
  readonly failed: Promise<unknown>;
  /** Resolves when a drain is requested on the admin socket of a proxy. The caller must then call `close`, as after SIGTERM. */
  readonly drained: Promise<void>;
  /** Resolves with the number of open connections in the last heartbeats; 0 if the store does not answer. */
  countConnections(): Promise<number>;
  close(): Promise<void>;
}

/** Starts all components. Resolves when every Service of the manifests is served or has a reported problem. */
export async function startStandalone(options: StandaloneOptions): Promise<RunningStandalone> {
  const { filename, stdin, node = [], state, redis, log, onProblemChanges, onWarning } = options;
  const fleetOptions = resolveFleetOptions(options);
  const drained = Promise.withResolvers<void>();
  const failures: Promise<unknown>[] = [];
  /** Undefined if Kubernetes Secrets are not read. */
  let fleetSecret: Secret | undefined;
  let source: Source;
  let store: Store;
  let console: RunningConsole | undefined;
  // The console reads access logs from the admin servers of the proxies. No other process knows the token.
  const adminToken = new Secret(randomBytes(32).toString('hex'));
  let controller: Controller;
  let proxies: FleetProxies;
  let problems: { close(): Promise<void> };

  const parts: Part[] = [
    {
      name: 'source',
      async start() {
        const resolved = await resolveFleetSecret({ given: options.fleetSecret, redis, state });
        fleetSecret = resolved.secret;
        if (resolved.cannotOpenState) onWarning?.(NEW_FLEET_SECRET_WARNING);
        const files = await openDirectorySource({ paths: filename, stdin, nodes: node, clock, fleetSecret });
        source = await openSource(files, options);
        if (files.ignoredKinds().has('Secret')) onWarning?.(SECRETS_NOT_READ_WARNING);
      },
      close: () => source.close(),
    },
    {
      name: 'store',
      async start() {
        store = await openStore(options);
      },
      close: () => store.close(),
    },
    // The console starts before the proxies, so that a console port that is in use is reported before any Service is served.
    {
      name: 'console',
      async start() {
        if (options.console === 'off') return;
        console = await openConsole(store, { address: options.console, adminToken, log });
        failures.push(console.failed);
      },
      close: () => console?.close(),
    },
    {
      name: 'controller',
      async start(signal) {
        const secretAccess = { kind: fleetSecret === undefined ? 'none' : 'cluster' } as const;
        const settings = fleetSettingsFor(source.snapshot().nodes, { ...fleetOptions, secretAccess });
        controller = startController({ source, store, settings, log: log.child({ part: 'controller' }), clock });
        await closeOnFailure(controller, Promise.race([controller.idle(), untilAborted(signal)]));
      },
      close: () => controller.close(),
    },
    {
      name: 'proxies',
      async start(signal) {
        const {
          trustProxyProtocol,
          trustForwarded,
          writeForwarded,
          topClients,
          workers = availableParallelism(),
          transport = DEFAULT_TRANSPORT,
        } = options;
        for (const warning of [...trustedProxyWarnings(options), ...(await kernelWarnings(transport))])
          onWarning?.(warning);
        proxies = new FleetProxies({
          store,
          log: log.child({ part: 'proxies' }),
          start: ({ name }) =>
            startProxy({
              // A second proxy with the same fleet and node on this machine would wait until the first proxy ends.
              fleet: fleetNameFor(options),
              node: name,
              store,
              fleetSecret,
              admin: { host: '127.0.0.1', port: 0 },
              adminToken,
              workers,
              trustProxyProtocol,
              trustForwarded,
              writeForwarded,
              topClients,
              transport,
              tls: options.tls,
              stateDirectory: state,
              onDrain: drained.resolve,
              version: version(),
              log: log.child({ part: 'proxy' }),
              accessLogOutput: options.accessLogOutput,
              clock,
            }),
        });
        const serving = Promise.race([waitUntilServing(store, signal), proxies.failed, untilAborted(signal)]);
        const unreported = await closeOnFailure(proxies, serving);
        if (unreported?.length) onWarning?.(unreportedNodesWarning(unreported));
        failures.push(proxies.failed);
      },
      close: () => proxies.close(),
    },
    {
      name: 'problems',
      async start(signal) {
        problems = watchProblems({ store, clock, log, onChangeSet: onProblemChanges });
        await closeOnFailure(problems, Promise.race([console?.refresh(), untilAborted(signal)]));
      },
      close: () => problems.close(),
    },
  ];

  const running = await startParts(parts, options);
  return {
    consoleUrl: console?.url,
    failed: Promise.race(failures),
    drained: drained.promise,
    async countConnections() {
      const heartbeats = await store.heartbeats.list().catch(() => []);
      return heartbeats.reduce((sum, { connections }) => sum + connections, 0);
    },
    close: () => running.close(),
  };
}

const NEW_FLEET_SECRET_WARNING =
  'the file fleet-secret in the --state directory was missing, so a new secret was created: certificates in that directory cannot be decrypted and are not served until their Secrets are read again';

const SECRETS_NOT_READ_WARNING =
  'Secrets are not read, because WEIR_FLEET_SECRET is not set: with --redis, this secret encrypts private keys in Redis; set WEIR_FLEET_SECRET to the same secret of at least 32 characters for all processes of the fleet';

function unreportedNodesWarning(nodes: readonly string[]): string {
  return `no proxy on ${nodes.join(', ')} reported its listeners within 15 s; "weir get problems" shows what is missing`;
}

/**
 * Waits for the start of a component and resolves with its result. If the start fails, closes the component and rethrows the error,
 * because `startParts` closes only components that have started.
 */
async function closeOnFailure<T>(part: { close(): Promise<void> }, started: Promise<T>): Promise<T> {
  try {
    return await started;
  } catch (error) {
    await part.close().catch(() => {}); // The caller gets the error of the start instead.
    throw error;
  }
}

function openConsole(
  store: Store,
  { address, adminToken, log }: { readonly address: HostPort; readonly adminToken: Secret; readonly log: Logger },
): Promise<RunningConsole> {
  return startConsole({
    store,
    fleet: STANDALONE_FLEET,
    ...address,
    suspensionWriter: storeSuspensionWriter({ suspensionStore: store.suspensions, clock }),
    auth: { kind: 'none' },
    proxyAdmin: { token: adminToken },
    clock,
    log: log.child({ part: 'console' }),
  });
}

/**
 * Returns the fleet name for the proxies. Without Redis the name is unique, because each process is a separate fleet. With Redis the name
 * is the same in each process, so that one process at a time serves a node.
 */
function fleetNameFor({ redis }: StandaloneOptions): string {
  return redis === undefined ? `${STANDALONE_FLEET}-${pid}` : STANDALONE_FLEET;
}

export interface SourceOptions {
  readonly kubeconfig?: string | undefined;
  readonly state?: string | undefined;
  readonly log: Logger;
}

/**
 * Timeouts of requests to the API server. The timeouts are short, because the connection may go through a proxy of this process. If so,
 * only a timeout shows that an API server is lost, and the next connection goes to another API server.
 */
const API_SERVER_TIMEOUTS = { timeoutMs: 10_000, watchIdleTimeoutMs: 30_000 };

/**
 * Returns the source of the manifests. If `kubeconfig` is given, the EndpointSlices of its API server replace the EndpointSlices of the
 * manifests.
 */
export async function openSource(files: DirectorySource, { kubeconfig, state, log }: SourceOptions): Promise<Source> {
  if (kubeconfig === undefined) return files;
  const api = new ReloadingKubeApi(kubeconfig, API_SERVER_TIMEOUTS);
  const cachePath = state === undefined ? undefined : join(state, 'api-server-endpoints.json');
  return openLiveEndpointsSource({ files, api, cachePath, clock, log: log.child({ part: 'api-server' }) });
}
