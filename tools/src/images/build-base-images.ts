import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programPath } from '../programs/require-program.ts';
import { runCommand } from '../programs/run-command.ts';
import { type ImageBuilder, openImageBuilder } from './image-builder.ts';
import { imageNames, npmNodeBinary } from './image-sources.ts';

/** The image in the builder's storage that replaces the official Node image; the paths in it are the same. */
export const NODE_IMAGE = 'localhost/node';
const DEBIAN_IMAGE = 'localhost/debian';
const DEBIAN_SUITE = 'bookworm';

/** Builds the images that all builds start from, once per folder. The file `complete` marks a finished folder. */
export async function buildBaseImages(folder: string, progress: (text: string) => void): Promise<ImageBuilder> {
  if (existsSync(join(folder, 'complete'))) return openImageBuilder(folder);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const builder = openImageBuilder(folder);
  progress('building the base image from Debian packages, which takes one to two minutes and is needed only once');
  await buildDebianImage(builder, join(folder, 'system'));
  await buildNodeImage(builder, join(folder, 'npm'));
  progress('building the Redis image');
  await buildRedisImage(builder, folder);
  writeFileSync(join(folder, 'complete'), '');
  return builder;
}

async function buildDebianImage({ buildah, run }: ImageBuilder, root: string): Promise<void> {
  const debootstrap = programPath('debootstrap');
  const include = '--include=ca-certificates,libatomic1,libcap2-bin';
  const unpackedKeys = join(debootstrap, '../../root/usr/share/keyrings/debian-archive-keyring.gpg');
  const keyring = existsSync(unpackedKeys) ? [`--keyring=${unpackedKeys}`] : [];
  await run(debootstrap, '--variant=minbase', include, ...keyring, DEBIAN_SUITE, root, await debianMirror());
  rmSync(join(root, 'var/cache/apt/archives'), { recursive: true });
  rmSync(join(root, 'var/lib/apt/lists'), { recursive: true });
  const container = (await buildah('from', 'scratch')).trim();
  await buildah('add', '--quiet', container, root, '/');
  await buildah('commit', '--quiet', '--rm', container, DEBIAN_IMAGE);
  rmSync(root, { recursive: true });
}

/** Returns the mirror of the host if the host runs the same Debian release, because the official mirror may be unreachable. */
async function debianMirror(): Promise<string> {
  const official = 'http://deb.debian.org/debian';
  const format = '$(CODENAME) $(COMPONENT) $(REPO_URI)';
  const targets = await runCommand('apt-get', ['indextargets', '--format', format, 'Identifier: Packages']).catch(
    () => '',
  );
  return new RegExp(`^${DEBIAN_SUITE} main (http.*?)/?$`, 'm').exec(targets)?.[1] ?? official;
}

/** Installs npm from its own package, because a distribution's npm is spread over the file system. */
async function buildNodeImage({ buildah }: ImageBuilder, scratch: string): Promise<void> {
  mkdirSync(scratch);
  const version = (await runCommand('npm', ['--version'], { cwd: tmpdir() })).trim();
  await runCommand('npm', ['pack', '--silent', `npm@${version}`], { cwd: scratch });
  const [archive = ''] = readdirSync(scratch);
  await runCommand('tar', ['-xzf', archive], { cwd: scratch });
  const container = (await buildah('from', '--pull-never', DEBIAN_IMAGE)).trim();
  await buildah('copy', '--quiet', container, npmNodeBinary().path, '/usr/local/bin/node');
  await buildah('copy', '--quiet', container, join(scratch, 'package'), '/usr/local/lib/node_modules/npm');
  const npm = '../lib/node_modules/npm/bin/npm-cli.js';
  await buildah('run', container, '--', 'sh', '-c', `ln -s ${npm} /usr/local/bin/npm && npm --version`);
  await buildah('commit', '--quiet', '--rm', container, NODE_IMAGE);
  rmSync(scratch, { recursive: true });
}

async function buildRedisImage({ buildah }: ImageBuilder, folder: string): Promise<void> {
  const context = join(folder, 'redis');
  mkdirSync(context);
  const file = new URL('../../images/Dockerfile.redis', import.meta.url).pathname;
  const tag = 'localhost/redis';
  await buildah(
    'bud',
    '--quiet',
    '--pull-never',
    '--build-arg',
    `BASE=${DEBIAN_IMAGE}`,
    '--tag',
    tag,
    '--file',
    file,
    context,
  );
  await buildah('push', '--quiet', tag, `oci-archive:${join(folder, 'redis.tar')}:${imageNames().redis}`);
  await buildah('rmi', tag);
}
