import { linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { cachedProgramPath, imagesDirectory } from '../programs/cache-directory.ts';
import { buildBase, NODE_BASE } from './build-base.ts';
import { copyContext } from './context.ts';
import { baseFingerprint } from './fingerprint.ts';
import { appVersion, imageNames } from './image-names.ts';
import { keepRecent } from './keep-recent.ts';
import { npmAsOutside } from './npm-outside.ts';
import type { Workshop } from './workshop.ts';

/**
 * Builds both images by their Dockerfiles as they stand, and puts them as `proxy.tar` and `controller.tar`, with a `redis.tar`, into a
 * folder that is named by the sources as they are now. The finished folder appears by one rename. To be called under the lock of the cache.
 */
export async function buildImages(progress: (text: string) => void): Promise<void> {
  const base = join(imagesDirectory(), 'base', baseFingerprint());
  const workshop = await buildBase(base, progress);
  // in the workshop's own folder: what an interrupted build leaves there is removed by the next
  const scratch = join(base, 'building');
  const context = join(scratch, 'context');
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(context, { recursive: true });
  await workshop.buildah('rm', '--all');
  copyContext(context);
  // by the copy: an editor may have changed the sources while the base was made
  const archives = cachedProgramPath('weir-images');
  const outside = await npmAsOutside(scratch);
  for (const kind of ['proxy', 'controller'] as const) {
    progress(`building the image of the ${kind}: about a minute`);
    const archive = join(scratch, `${kind}.tar`);
    await build(workshop, kind, { context, outside, revision: basename(archives), archive });
  }
  linkSync(join(base, 'redis.tar'), join(scratch, 'redis.tar'));
  rmSync(context, { recursive: true });
  rmSync(join(scratch, 'npmrc'));
  rmSync(archives, { recursive: true, force: true });
  mkdirSync(join(archives, '..'), { recursive: true });
  renameSync(scratch, archives);
  keepRecent(archives, 6);
  keepRecent(base, 1);
}

type Build = {
  readonly context: string;
  readonly outside: readonly string[];
  readonly revision: string;
  readonly archive: string;
};

async function build(
  { buildah }: Workshop,
  kind: 'proxy' | 'controller',
  { context, outside, revision, archive }: Build,
): Promise<void> {
  const tag = `localhost/weir-${kind}`;
  const values = { NODE_IMAGE: NODE_BASE, VERSION: appVersion(), REVISION: revision };
  const args = Object.entries(values).map(([name, value]) => `--build-arg=${name}=${value}`);
  const file = join(context, `Dockerfile.${kind}`);
  // the same sources give the same bytes
  const same = ['--timestamp=0', '--pull-never'];
  await buildah('bud', ...same, ...args, ...outside, `--tag=${tag}`, `--file=${file}`, context);
  await buildah('push', '--quiet', tag, `oci-archive:${archive}:${imageNames()[kind]}`);
  await buildah('rmi', tag);
}
