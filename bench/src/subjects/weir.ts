import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SpawnedProcess, spawnProcess, temporaryDirectory } from '@weir/testkit';
import { collectGarbage, inspectorUrlIn } from '../measure/inspector.ts';
import { freePorts } from './free-ports.ts';
import { BACKEND_NAMES, type BackendPorts, type Subject, type SubjectName } from './subject.ts';
import { readFeatureSupport, readLedger } from './weir-console.ts';
import { benchmarkManifests, type LimitProfile, limitNamesOf } from './weir-manifests.ts';

// the program itself, not the launcher `weir.js`, because replacing the launcher's process would lose the CPU profile
const WEIR_PROGRAM = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url));

export type WeirOptions = {
  readonly name?: SubjectName;
  readonly workers?: number;
  readonly limits?: LimitProfile;
  readonly profileDirectory?: string;
  /** True if Weir is started with an inspector, through which `collectGarbage` runs the garbage collector. */
  readonly isInspected?: boolean;
  /** Further options of Node. */
  readonly nodeOptions?: readonly string[];
};

export type WeirServices<Backend extends string> = {
  /** Manifests that contain a Service for each backend, with the name of the backend. */
  readonly manifests: string;
  /** The port of each Service at 127.0.0.1. */
  readonly ports: Readonly<Record<Backend, number>>;
  /** The backends that the manifests contain. */
  readonly backends: readonly Backend[];
  /** Arguments of `weir standalone`. */
  readonly standaloneArguments?: readonly string[];
};

/** Starts Weir with a Service for each backend of `l4`. */
export async function startWeir(backends: BackendPorts, options: WeirOptions = {}): Promise<Subject> {
  const ports = await freePorts();
  const manifests = benchmarkManifests(ports, backends, options.limits ?? 'none');
  return startWeirServices({ manifests, ports, backends: BACKEND_NAMES }, options);
}

/** Starts `weir standalone`. The CPU time of the process includes the controller and the console. */
export async function startWeirServices<Backend extends string>(
  { manifests, ports, backends, standaloneArguments = [] }: WeirServices<Backend>,
  options: WeirOptions,
): Promise<Subject<Backend>> {
  const { name = 'weir', workers = 1, limits = 'none' } = options;
  if (!existsSync(WEIR_PROGRAM)) throw new Error(`${WEIR_PROGRAM} is missing; select other proxies with --subjects`);
  await using cleanup = new AsyncDisposableStack();
  const flags = [
    ...(options.profileDirectory ? ['--cpu-prof', `--cpu-prof-dir=${options.profileDirectory}`] : []),
    ...(options.isInspected ? ['--inspect=127.0.0.1:0'] : []),
    ...(options.nodeOptions ?? []),
  ];
  const standalone = await startStandalone(manifests, { workers, flags, standaloneArguments });
  const { process: weir, console } = cleanup.use(standalone);
  const inspector = inspectorUrlIn(weir.output());
  const limitNames = limitNamesOf(limits);
  const { unsupported, notEnforced } = await readFeatureSupport(console, { backends, limitNames });
  const exceptions = notEnforced.length === 0 ? '' : ` (not enforced: ${notEnforced.join(', ')})`;
  const started = cleanup.move();
  const threads = `${workers} worker${workers === 1 ? '' : 's'}`;
  return {
    name,
    description: `weir standalone, ${threads}, metering on, limits: ${limits}${exceptions}; controller and console in the same process`,
    pid: weir.pid,
    output: weir.output,
    ports,
    unsupported,
    ...(inspector === undefined ? {} : { collectGarbage: () => collectGarbage(inspector) }),
    readLedger: () => readLedger(console, backends),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

export type Standalone = AsyncDisposable & {
  readonly process: SpawnedProcess;
  /** The URL of the console. */
  readonly console: string;
};

export type StandaloneOptions = {
  readonly workers: number;
  /** Options of Node. */
  readonly flags?: readonly string[];
  readonly standaloneArguments?: readonly string[];
};

/** Starts `weir standalone` with these manifests. */
export async function startStandalone(
  manifests: string,
  { workers, flags = [], standaloneArguments = [] }: StandaloneOptions,
): Promise<Standalone> {
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-weir'));
  writeFileSync(join(directory.path, 'services.yaml'), manifests);
  const command = [
    'standalone',
    '-f',
    directory.path,
    '--workers',
    String(workers),
    '--console',
    '127.0.0.1:0',
    ...standaloneArguments,
  ];
  const weir = cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: ['--conditions=source', ...flags, WEIR_PROGRAM, ...command],
      name: 'weir standalone',
      readyWhen: /\bready\b.*http:\/\/\S+/,
      mayExit: true,
    }),
  );
  const [, console = ''] = /\bready\b.*?(http:\/\/[^\s"]+)/.exec(weir.output()) ?? [];
  const started = cleanup.move();
  return { process: weir, console, [Symbol.asyncDispose]: () => started.disposeAsync() };
}
