import { spawnSync } from 'node:child_process';

export type FoundVersion =
  /** `commit`: the hash of the found commit; `name`: the tag or other revision that selected the commit. */
  | { readonly kind: 'found'; readonly commit: string; readonly name: string }
  /** The sources have no git history, so no other version is available. */
  | { readonly kind: 'missing'; readonly reason: string };

export type FindVersionOptions = {
  /** A commit, tag or other revision to use instead of the last release. */
  readonly requestedVersion?: string | undefined;
  /** The commit to use if the history contains no release. */
  readonly fallbackCommit: string;
};

/**
 * Finds the previous version of the sources in this folder: the requested version, or else the last release in the git history that does
 * not contain the current commit, or else `fallbackCommit`. Throws if the clone lacks this version; the error names a command to fetch it.
 */
export function findVersion(checkout: string, { requestedVersion, fallbackCommit }: FindVersionOptions): FoundVersion {
  const git = gitIn(checkout);
  const inside = git('rev-parse', '--show-prefix');
  // With a non-empty prefix, the folder is a subfolder of another repository.
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
    ? [' (the clone is shallow)', 'git fetch --unshallow --tags']
    : ['', requestedVersion === undefined ? 'git fetch --tags' : `git fetch origin ${name}`];
  throw new Error(`the previous version is ${name}, which this clone does not contain${note}; run: ${fetch}`);
}

function lastRelease(git: Git): string | undefined {
  // Sorts v1.0.0-rc.1 before v1.0.0. Excludes the tags of HEAD, because a release is not its own previous version.
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
