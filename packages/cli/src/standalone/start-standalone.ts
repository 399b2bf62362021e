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
import { kernelWarnings, trustedProxyWarnings } from '@weir/proxy';
import { systemClock as clock, type HostPort, type Logger, type Part, type Secret, startParts } from '@weir/runtime';
import type { RedisAccess, Store } from '@weir/store';
import { type FleetOptions, fleetSettingsFor, resolveFleetOptions } from './directory-settings.ts';
import { FleetProxies, startNodeProxy, waitUntilServing } from './fleet-proxies.ts';
import { resolveFleetSecret } from './fleet-secret.ts';
import { openStore, STANDALONE_FLEET } from './open-store.ts';
import { untilAborted } from './until-aborted.ts';

// Controller, proxies and console over one store in one process: the same parts as in a cluster, composed here.
export interface StandaloneOptions extends Partial<FleetOptions> {
  /** Files and directories of manifests. */
  readonly filename: readonly string[];
  readonly node?: readonly CommandLineNode[];
  readonly console: HostPort | 'off';
  /** Threads of each proxy. */
  readonly workers?: number;
  /** CIDRs from which every connection begins with a PROXY header. */
  readonly trustProxyProtocol?: readonly string[];
  readonly state?: string;
  readonly redis?: RedisAccess | undefined;
  /** Of an API server that names the endpoints of the Services of the manifests. */
  readonly kubeconfig?: string;
  /** WEIR_FLEET_SECRET, as it stands there. */
  readonly fleetSecret?: string | undefined;
  readonly log: Logger;
  /** Aborted while it starts: it gives up. */
  readonly signal: AbortSignal;
  readonly onProblemChanges: (news: ProblemChangeSet) => void;
  /** What of this host, or of whom it trusts, will cost somebody something; absent: nobody wants to know. */
  readonly onWarning?: (advice: string) => void;
}

export interface RunningStandalone {
  readonly consoleUrl: string | undefined;
  /** Rejects when a part cannot go on. */
  readonly failed: Promise<unknown>;
  /** Resolves when a drain was asked for on the local socket of a proxy: to be closed, as by SIGTERM. */
  readonly drained: Promise<void>;
  close(): Promise<void>;
}

/** Resolves when everything that the manifests ask for is served, or is a problem that was told. */
export async function startStandalone(options: StandaloneOptions): Promise<RunningStandalone> {
  const draining = Promise.withResolvers<void>();
  const made = { onDrain: draining.resolve } as StartedParts;
  const running = await startParts(partsFor(options, made), options);
  return {
    consoleUrl: made.console?.url,
    failed: Promise.race([made.proxies.failed, ...(made.console === undefined ? [] : [made.console.failed])]),
    drained: draining.promise,
    close: () => running.close(),
  };
}

/** The parts, each from its start on. */
interface StartedParts {
  readonly onDrain: () => void;
  /** Undefined: Secrets are not read. */
  fleetSecret: Secret | undefined;
  files: DirectorySource;
  source: Source;
  store: Store;
  console?: RunningConsole;
  controller: Controller;
  proxies: FleetProxies;
  problems: { close(): Promise<void> };
}

function partsFor(options: StandaloneOptions, made: StartedParts): Part[] {
  const { filename, node = [], log, onProblemChanges, onWarning } = options;
  const fleet = resolveFleetOptions(options);
  return [
    {
      name: 'source',
      async start() {
        const { fleetSecret: given, redis, state } = options;
        const { secret: fleetSecret, cannotOpenState } = await resolveFleetSecret({ given, redis, state });
        made.fleetSecret = fleetSecret;
        if (cannotOpenState) onWarning?.(NEW_FLEET_SECRET_WARNING);
        made.files = await openDirectorySource({ paths: filename, nodes: node, clock, fleetSecret });
        made.source = await openSource(made.files, options);
        if (made.files.ignoredKinds().has('Secret')) onWarning?.(SECRETS_NOT_READ_WARNING);
      },
      close: () => made.source.close(),
    },
    {
      name: 'store',
      async start() {
        made.store = await openStore(options);
      },
      close: () => made.store.close(),
    },
    // Before anything is served: a port that is taken is a mistake of the command line.
    consolePartFor(options, made),
    {
      name: 'controller',
      async start(signal) {
        const { source, store, fleetSecret } = made;
        const secretAccess = { kind: fleetSecret === undefined ? 'none' : 'cluster' } as const;
        const settings = fleetSettingsFor(source.snapshot().nodes, { ...fleet, secretAccess });
        made.controller = startController({ source, store, settings, log: log.child({ part: 'controller' }), clock });
        await closeOnFailure(made.controller, Promise.race([made.controller.idle(), untilAborted(signal)]));
      },
      close: () => made.controller.close(),
    },
    {
      name: 'proxies',
      async start(signal) {
        const { store, onDrain, fleetSecret } = made;
        const { workers, trustProxyProtocol, state } = options;
        for (const advice of [...trustedProxyWarnings(trustProxyProtocol), ...(await kernelWarnings())])
          onWarning?.(advice);
        const of = { fleet: fleetNameFor(options), store, fleetSecret };
        const each = { ...of, workers, trustProxyProtocol, state, onDrain, log, clock };
        made.proxies = new FleetProxies({
          store,
          log: log.child({ part: 'proxies' }),
          start: ({ name }) => startNodeProxy({ ...each, node: name }),
        });
        const serving = Promise.race([waitUntilServing(store, signal), made.proxies.failed, untilAborted(signal)]);
        await closeOnFailure(made.proxies, serving);
      },
      close: () => made.proxies.close(),
    },
    {
      name: 'problems',
      async start(signal) {
        made.problems = watchProblems({ store: made.store, clock, log, onChangeSet: onProblemChanges });
        await closeOnFailure(made.problems, Promise.race([made.console?.refresh(), untilAborted(signal)]));
      },
      close: () => made.problems.close(),
    },
  ];
}

const NEW_FLEET_SECRET_WARNING =
  'the fleet-secret of --state was not there, and another was made: certificates that are kept there are not shown before their Secrets are read again';

const SECRETS_NOT_READ_WARNING =
  'Secrets are not read: with --redis the keys in them lie there sealed, and WEIR_FLEET_SECRET is not set, which they are sealed with; set it to the same secret of at least 32 characters for all processes of the fleet';

/** A part whose start fails has cleaned up after itself. */
async function closeOnFailure(begun: { close(): Promise<void> }, settled: Promise<unknown>): Promise<void> {
  try {
    await settled;
  } catch (error) {
    await begun.close().catch(() => {}); // The reason of the start counts.
    throw error;
  }
}

function consolePartFor({ console: place, log }: StandaloneOptions, made: StartedParts): Part {
  return {
    name: 'console',
    async start() {
      if (place === 'off') return;
      const { store } = made;
      made.console = await startConsole({
        store,
        fleet: STANDALONE_FLEET,
        ...place,
        suspensionWriter: storeSuspensionWriter({ suspensionStore: store.suspensions, clock }),
        auth: { kind: 'none' },
        clock,
        log: log.child({ part: 'console' }),
      });
    },
    close: () => made.console?.close(),
  };
}

/** In memory each process is a fleet of its own; whoever shares a Redis shares the fleet, and takes turns on a node. */
function fleetNameFor({ redis }: StandaloneOptions): string {
  return redis === undefined ? `${STANDALONE_FLEET}-${pid}` : STANDALONE_FLEET;
}

export interface SourceOptions {
  readonly kubeconfig?: string | undefined;
  readonly state?: string | undefined;
  readonly log: Logger;
}

/**
 * An API server that hangs is mostly one that is being lost. The connection to it may lead through this process, so nothing but its
 * silence tells; the next one goes to another API server.
 */
const API_SERVER_TIMEOUTS = { timeoutMs: 10_000, watchIdleTimeoutMs: 30_000 };

/** The files, refined by an API server if there is one. */
export async function openSource(files: DirectorySource, { kubeconfig, state, log }: SourceOptions): Promise<Source> {
  if (kubeconfig === undefined) return files;
  const api = new ReloadingKubeApi(kubeconfig, API_SERVER_TIMEOUTS);
  const cachePath = state === undefined ? undefined : join(state, 'api-server-endpoints.json');
  return openLiveEndpointsSource({ files, api, cachePath, clock, log: log.child({ part: 'api-server' }) });
}
