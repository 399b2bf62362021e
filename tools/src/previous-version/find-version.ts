import { spawnSync } from 'node:child_process';

export type FoundVersion =
  /** A commit of this repository, and the tag or hash that selected the commit. */
  | { readonly kind: 'found'; readonly commit: string; readonly name: string }
  /** The sources have no git history, so no other version is available. */
  | { readonly kind: 'missing'; readonly reason: string };

export type FindVersionOptions = {
  /** A commit, tag or other revision that the user requests instead of the last release. */
  readonly requestedVersion?: string | undefined;
  /** The previous version if the history contains no release. */
  readonly fallbackCommit: string;
};

/**
 * Finds the version before the sources in this folder: the requested version, else the last release in their history other than
 * the current commit. Throws an error that names the command to fetch the version if the clone does not contain it.
 */
export function findVersion(checkout: string, { requestedVersion, fallbackCommit }: FindVersionOptions): FoundVersion {
  const git = gitIn(checkout);
  const inside = git('rev-parse', '--show-prefix');
  // A non-empty prefix means that the folder belongs to another repository.
  if (inside.failure !== undefined || inside.text !== '') {
    const cause = inside.failure ?? 'the folder is inside another repository';
    const reason = `${checkout} is not a clone of the repository (${cause})`;
    if (requestedVersion !== undefined) throw new Error(`cannot use WEIR_PREVIOUS=${requestedVersion}: ${reason}`);
    return { kind: 'missing', reason };
  }
  const name = requestedVersion ?? lastRelease(git) ?? fallbackCommit;
  const { text: commit, failure } = git('rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`);
  if (failure === undefined) return { kind: 'found', commit, name };
  const isShallow = git('rev-parse', '--is-shallow-repository').text === 'true';
  const [note, fetch] = isShallow
    ? [' (it is shallow)', 'git fetch --unshallow --tags']
    : ['', requestedVersion === undefined ? 'git fetch --tags' : `git fetch origin ${name}`];
  throw new Error(`the previous version is ${name}, which this clone does not contain${note}; run: ${fetch}`);
}

function lastRelease(git: Git): string | undefined {
  // v1.0.0-rc.1 sorts before v1.0.0, and a release is not its own previous version.
  const { text } = git(
    ...['-c', 'versionsort.suffix=-', 'tag', '--sort=-version:refname'],
    ...['--merged', 'HEAD', '--no-contains', 'HEAD', '--list', 'v[0-9]*'],
  );
  return text.split('\n')[0] || undefined;
}

type Git = (...args: readonly string[]) => { readonly text: string; readonly failure?: string };

function gitIn(cwd: string): Git {
  return (...args) => {
    const { error, status, stdout, stderr } = spawnSync('git', args, { cwd, encoding: 'utf8' });
    if (error !== undefined) return { text: '', failure: error.message };
    const text = stdout.trim();
    return status === 0
      ? { text }
      : { text, failure: stderr.trim().split('\n')[0] || `git exited with code ${status}` };
  };
}
