import { spawnSync } from 'node:child_process';
import { cpus, loadavg, release } from 'node:os';
import { readProcessorTicks, stealShare } from '../measure/proc-stats.ts';

/** When, of which sources, and on what a result was measured that needs Redis. */
export type RunMetadata = {
  readonly at: string;
  readonly commit: string;
  /** The sources of the commit were changed. */
  readonly modified: boolean;
  readonly machine: string;
  readonly versions: { readonly redis: string };
  /** What the machine had to do: the mean of the last minute (getloadavg(3)) before and after. */
  readonly load: readonly [before: number, after: number];
  /** Which share of its processors' time its host gave to others meanwhile, from 0 to 1; null: not known. */
  readonly stolen: number | null;
};

/** To be called before the run; and what it returns, after it. */
export function startRun(versions: RunMetadata['versions']): () => RunMetadata {
  const at = new Date().toISOString();
  const before = loadAverage();
  const time = readProcessorTicks();
  return () => ({
    at,
    ...readWorkTree(),
    machine: describeMachine(),
    versions,
    load: [before, loadAverage()],
    stolen: stealShare(time, readProcessorTicks()),
  });
}

/** All of it in one line, and in the middle of it what else there is to say. */
export function formatHeadline(
  { at, commit, modified, machine: where, versions, load, stolen }: RunMetadata,
  ...more: string[]
): string {
  const source = `${commit}${modified ? ' with changes' : ''}`;
  const [before, after] = load.map((value) => value.toFixed(1));
  const parts = [
    at.slice(0, 10),
    source,
    where,
    `Redis ${versions.redis}`,
    ...more,
    `load ${before} before`,
    `${after} after`,
    ...(stolen === null ? [] : [`${(stolen * 100).toFixed(1)} % of the processors taken by the host`]),
  ];
  return parts.join(', ');
}

function loadAverage(): number {
  return loadavg()[0] ?? Number.NaN;
}

/** What was measured on, in one line. */
export function describeMachine(): string {
  const all = cpus();
  const model = all[0]?.model.trim() ?? 'unknown processor';
  return `${all.length} × ${model}, Linux ${release()}, Node ${process.versions.node}`;
}

export const REPOSITORY_ROOT: string = new URL('../../../', import.meta.url).pathname;

/** Which sources are measured. Outside of git, as in a tarball, the commit is `unknown`. */
export function readWorkTree(): { readonly commit: string; readonly modified: boolean } {
  const commit = git('rev-parse', '--short', 'HEAD') || 'unknown';
  return { commit, modified: git('status', '--porcelain', '--', 'packages', 'bench/src') !== '' };
}

function git(...args: string[]): string {
  return spawnSync('git', args, { cwd: REPOSITORY_ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
}
