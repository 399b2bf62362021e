import { linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { cachedProgramPath, imagesDirectory } from '../programs/cache-directory.ts';
import { buildBaseImages, NODE_IMAGE } from './build-base.ts';
import { copyBuildContext } from './context.ts';
import { baseImagesFingerprint } from './fingerprint.ts';
import { chartAppVersion, imageNames } from './image-names.ts';
import { keepMostRecent } from './keep-recent.ts';
import { hostNpmVolumes } from './npm-outside.ts';
import type { ImageBuilder } from './workshop.ts';

/**
 * Builds both images by their Dockerfiles as they stand, and puts them as `proxy.tar` and `controller.tar`, with a `redis.tar`, into a
 * folder that is named by the sources as they are now. The finished folder appears by one rename. To be called under the lock of the cache.
 */
export async function buildImages(progress: (text: string) => void): Promise<void> {
  const base = join(imagesDirectory(), 'base', baseImagesFingerprint());
  const workshop = await buildBaseImages(base, progress);
  // in the workshop's own folder: what an interrupted build leaves there is removed by the next
  const scratch = join(base, 'building');
  const context = join(scratch, 'context');
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(context, { recursive: true });
  await workshop.buildah('rm', '--all');
  copyBuildContext(context);
  // by the copy: an editor may have changed the sources while the base was made
  const archives = cachedProgramPath('weir-images');
  const outside = await hostNpmVolumes(scratch);
  for (const kind of ['proxy', 'controller'] as const) {
    progress(`building the image of the ${kind}: about a minute`);
    const archive = join(scratch, `${kind}.tar`);
    await buildImage(workshop, kind, { context, outside, revision: basename(archives), archive });
  }
  linkSync(join(base, 'redis.tar'), join(scratch, 'redis.tar'));
  rmSync(context, { recursive: true });
  rmSync(join(scratch, 'npmrc'));
  rmSync(archives, { recursive: true, force: true });
  mkdirSync(join(archives, '..'), { recursive: true });
  renameSync(scratch, archives);
  keepMostRecent(archives, 6);
  keepMostRecent(base, 1);
}

type BuildOptions = {
  readonly context: string;
  readonly outside: readonly string[];
  readonly revision: string;
  readonly archive: string;
};

async function buildImage(
  { buildah }: ImageBuilder,
  kind: 'proxy' | 'controller',
  { context, outside, revision, archive }: BuildOptions,
): Promise<void> {
  const tag = `localhost/weir-${kind}`;
  const values = { NODE_IMAGE: NODE_IMAGE, VERSION: chartAppVersion(), REVISION: revision };
  const args = Object.entries(values).map(([name, value]) => `--build-arg=${name}=${value}`);
  const file = join(context, `Dockerfile.${kind}`);
  // the same sources give the same bytes
  const same = ['--timestamp=0', '--pull-never'];
  await buildah('bud', ...same, ...args, ...outside, `--tag=${tag}`, `--file=${file}`, context);
  await buildah('push', '--quiet', tag, `oci-archive:${archive}:${imageNames()[kind]}`);
  await buildah('rmi', tag);
}
