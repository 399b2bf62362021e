import { fileURLToPath } from 'node:url';
import { type SkipOptions, skipFor } from '../programs/require-program.ts';
import { type TemporaryDirectory, temporaryDirectory } from '../temporary-directory.ts';
import { type FoundVersion, findVersion } from './find-version.ts';
import { modulesFor } from './modules-of.ts';
import { linkModules, unpackCommit } from './unpack.ts';

const CHECKOUT = fileURLToPath(new URL('../../../../', import.meta.url));

/** The last state without images and charts. Stands here until the first release: from then on there is a tag. */
const FALLBACK_COMMIT = '5ebcdc77726659cf475b05540c85b3f2a853cf0a';

/**
 * Declares that a test runs processes of the version before this one: `WEIR_PREVIOUS`, else the last release. To be called before the file
 * moves into a namespace, from where no registry can be reached. Skipped where the sources have no history; throws where that version only
 * has to be fetched.
 */
export function requirePreviousVersion(): SkipOptions {
  const found = previousVersion();
  if (found.kind === 'missing') return skipFor([`there is no previous version: ${found.reason}`]);
  modulesFor(CHECKOUT, found.commit);
  return {};
}

/** Its sources in a folder of their own, ready to run: `packages/proxy/src/main.ts` and so on. */
export function unpackPreviousVersion(): TemporaryDirectory & { readonly name: string } {
  const found = previousVersion();
  if (found.kind === 'missing') throw new Error(`there is no previous version: ${found.reason}`);
  const directory = temporaryDirectory('previous');
  unpackCommit(CHECKOUT, found.commit, { into: directory.path, paths: ['package.json', 'packages', 'charts'] });
  linkModules(directory.path, modulesFor(CHECKOUT, found.commit));
  return { ...directory, name: found.name };
}

function previousVersion(): FoundVersion {
  const requestedVersion = process.env.WEIR_PREVIOUS || undefined;
  return findVersion(CHECKOUT, { requestedVersion, fallbackCommit: FALLBACK_COMMIT });
}
