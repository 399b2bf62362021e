import { spawnSync } from 'node:child_process';

export type FoundVersion =
  /** A commit of this repository, and the tag or hash that it was asked for by. */
  | { readonly kind: 'found'; readonly commit: string; readonly name: string }
  /** These are sources without a history: no version but this one can be had. */
  | { readonly kind: 'missing'; readonly reason: string };

export type FindVersionOptions = {
  /** What the user wants instead of the last release: anything that git takes for a commit. */
  readonly requestedVersion?: string | undefined;
  /** The one before this in a history without a release. */
  readonly fallbackCommit: string;
};

/**
 * The version before the sources in this folder: the wanted one, else the last release that is part of their history and is not they
 * themselves. Throws, with the command that fetches it, when the clone has a history and that one is not in it.
 */
export function findVersion(checkout: string, { requestedVersion, fallbackCommit }: FindVersionOptions): FoundVersion {
  const git = gitIn(checkout);
  const inside = git('rev-parse', '--show-prefix');
  // A folder inside of another repository has a prefix: that one's history is not ours.
  if (inside.failure !== undefined || inside.text !== '') {
    const why = inside.failure ?? 'another repository is around it';
    const reason = `${checkout} is no clone of the repository (${why})`;
    if (requestedVersion !== undefined) throw new Error(`WEIR_PREVIOUS is ${requestedVersion}, and ${reason}`);
    return { kind: 'missing', reason };
  }
  const name = requestedVersion ?? lastRelease(git) ?? fallbackCommit;
  const { text: commit, failure } = git('rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`);
  if (failure === undefined) return { kind: 'found', commit, name };
  const isShallow = git('rev-parse', '--is-shallow-repository').text === 'true';
  const [why, fetch] = isShallow
    ? [' (it is shallow)', 'git fetch --unshallow --tags']
    : ['', requestedVersion === undefined ? 'git fetch --tags' : `git fetch origin ${name}`];
  throw new Error(`the version before this one is ${name}, which this clone does not have${why}; fetch it: ${fetch}`);
}

function lastRelease(git: Git): string | undefined {
  // v1.0.0-rc.1 comes before v1.0.0, and a release is not the one before itself.
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
    return status === 0 ? { text } : { text, failure: stderr.trim().split('\n')[0] || `git ends with ${status}` };
  };
}
