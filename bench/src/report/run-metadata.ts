import { spawnSync } from 'node:child_process';
import { cpus, loadavg, release } from 'node:os';
import { readProcessorTicks, stealShare } from '../measure/proc-stats.ts';

/** The time of a run, the machine, the sources and the versions of the programs. */
export type RunMetadata = {
  readonly at: string;
  readonly commit: string;
  /** True if the work tree had uncommitted changes. */
  readonly modified: boolean;
  readonly machine: string;
  /** Versions of the measured programs by name. */
  readonly versions: Readonly<Record<string, string>>;
  /** Load average over one minute (getloadavg(3)) before and after the run. */
  readonly load: readonly [before: number, after: number];
  /** Share of the processors' time, 0 to 1, that the hypervisor gave to other machines during the run; null if unknown. */
  readonly stolen: number | null;
};

/** Records the start of a run. The returned function records the end of the run and returns the metadata. */
export function startRun(versions: RunMetadata['versions']): () => RunMetadata {
  const at = new Date().toISOString();
  const workTree = readWorkTree();
  const loadBefore = loadAverage();
  const ticksBefore = readProcessorTicks();
  return () => ({
    at,
    ...workTree,
    machine: describeMachine(),
    versions,
    load: [loadBefore, loadAverage()],
    stolen: stealShare(ticksBefore, readProcessorTicks()),
  });
}

/** Formats the metadata in one line, with `parameters` of the run after the versions. */
export function formatHeadline(
  { at, commit, modified, machine, versions, load, stolen }: RunMetadata,
  ...parameters: string[]
): string {
  const [loadBefore, loadAfter] = load.map((value) => value.toFixed(1));
  return [
    at.slice(0, 10),
    `${commit}${modified ? ' with uncommitted changes' : ''}`,
    machine,
    ...Object.entries(versions).map(([name, version]) => `${name} ${version}`),
    ...parameters,
    `load ${loadBefore} before`,
    `${loadAfter} after`,
    ...(stolen === null ? [] : [`CPU steal ${(stolen * 100).toFixed(1)} %`]),
  ].join(', ');
}

/** Writes progress to stderr, because the result is written to stdout. */
export function logProgress(text: string): void {
  console.error(`bench: ${text}`);
}

export const REPOSITORY_ROOT: string = new URL('../../../', import.meta.url).pathname;

function loadAverage(): number {
  return loadavg()[0] ?? Number.NaN;
}

export function describeMachine(): string {
  const processors = cpus();
  const model = processors[0]?.model.trim() ?? 'unknown processor';
  return `${processors.length} × ${model}, Linux ${release()}, Node ${process.versions.node}`;
}

/** Returns the commit of the sources. The commit is `unknown` outside of a Git work tree, for example in a tarball. */
function readWorkTree(): Pick<RunMetadata, 'commit' | 'modified'> {
  const commit = git('rev-parse', '--short', 'HEAD') || 'unknown';
  return { commit, modified: git('status', '--porcelain', '--', 'packages', 'bench/src') !== '' };
}

function git(...args: string[]): string {
  return spawnSync('git', args, { cwd: REPOSITORY_ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
}
