import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { spawnProcess, temporaryDirectory } from '@weir/testkit';
import { collectGarbage, inspectorUrlIn } from '../measure/inspector.ts';
import { freePorts } from './free-ports.ts';
import type { BackendPorts, Subject, SubjectName } from './subject.ts';
import { readFeatureSupport, readLedger } from './weir-console.ts';
import { benchmarkManifests, LIMIT_NAMES, type LimitProfile } from './weir-manifests.ts';

// What the bin runs in a checkout; started directly, since a profile does not survive that the bin replaces itself.
const WEIR_PROGRAM = fileURLToPath(new URL('../../../packages/cli/src/main.ts', import.meta.url));

export type WeirOptions = {
  readonly name?: SubjectName;
  readonly workers?: number;
  readonly limits?: LimitProfile;
  readonly profile?: string;
  /** So that it can be made to collect its garbage. */
  readonly isInspected?: boolean;
};

/** The real thing: controller, console and a proxy in one process; all their CPU time is counted. */
export async function startWeir(backends: BackendPorts, options: WeirOptions = {}): Promise<Subject> {
  const { name = 'weir', workers = 1, limits = 'none' } = options;
  if (!existsSync(WEIR_PROGRAM)) throw new Error('packages/cli/src is not here; measure others with --subjects');
  await using cleanup = new AsyncDisposableStack();
  const directory = cleanup.use(temporaryDirectory('bench-weir'));
  const ports = await freePorts();
  writeFileSync(join(directory.path, 'services.yaml'), benchmarkManifests(ports, backends, limits));
  const flags = [
    '--conditions=source',
    ...(options.profile ? ['--cpu-prof', `--cpu-prof-dir=${options.profile}`] : []),
    ...(options.isInspected ? ['--inspect=127.0.0.1:0'] : []),
  ];
  const command = ['standalone', '-f', directory.path, '--workers', String(workers), '--console', '127.0.0.1:0'];
  const weir = cleanup.use(
    await spawnProcess({
      command: process.execPath,
      args: [...flags, WEIR_PROGRAM, ...command],
      name: 'weir standalone',
      readyWhen: /\bready\b.*http:\/\/\S+/,
      mayExit: true,
    }),
  );
  const [, console = ''] = /\bready\b.*?(http:\/\/[^\s"]+)/.exec(weir.output()) ?? [];
  const inspector = inspectorUrlIn(weir.output());
  const { unsupported, notEnforced } = await readFeatureSupport(console, limits === 'none' ? [] : LIMIT_NAMES);
  const without = notEnforced.length === 0 ? '' : ` (not enforced yet: ${notEnforced.join(', ')})`;
  const started = cleanup.move();
  const threads = `${workers} worker${workers === 1 ? '' : 's'}`;
  return {
    name,
    description: `weir standalone, ${threads}, metering on, limits: ${limits}${without}; controller and console in the same process`,
    pid: weir.pid,
    output: weir.output,
    ports,
    unsupported,
    ...(inspector === undefined ? {} : { collectGarbage: () => collectGarbage(inspector) }),
    ledger: () => readLedger(console),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
