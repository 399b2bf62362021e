import { existsSync, linkSync, mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { cachedProgramPath, imagesDirectory, keepMostRecent } from '../programs/cache-directory.ts';
import { programPath } from '../programs/require-program.ts';
import { runCommand } from '../programs/run-command.ts';
import { buildBaseImages, NODE_IMAGE } from './build-base-images.ts';
import type { ImageBuilder } from './image-builder.ts';
import { baseImagesFingerprint, chartAppVersion, copyBuildContext, imageNames } from './image-sources.ts';

/**
 * Builds the images of the proxy and the controller from their Dockerfiles. Writes `proxy.tar`, `controller.tar` and `redis.tar` into
 * a folder of the cache that is named by a digest of the sources. The folder gets this name only when it is complete. The caller must
 * hold the lock of the cache.
 */
export async function buildImages(progress: (text: string) => void): Promise<void> {
  const base = join(imagesDirectory(), 'base', baseImagesFingerprint());
  const builder = await buildBaseImages(base, progress);
  // The scratch folder is inside the builder's folder, so that the next build removes the remains of an interrupted build.
  const scratch = join(base, 'building');
  const context = join(scratch, 'context');
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(context, { recursive: true });
  await builder.buildah('rm', '--all');
  copyBuildContext(context);
  // The path contains a digest of the sources. Computed only now, because the sources may have changed while the base image was built.
  const archives = cachedProgramPath('weir-images');
  const npmVolumes = await hostNpmVolumes(scratch);
  for (const kind of ['proxy', 'controller'] as const) {
    progress(`building the ${kind} image: about a minute`);
    const archive = join(scratch, `${kind}.tar`);
    await buildImage(builder, kind, { context, npmVolumes, revision: basename(archives), archive });
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
  readonly npmVolumes: readonly string[];
  readonly revision: string;
  readonly archive: string;
};

async function buildImage(
  { buildah }: ImageBuilder,
  kind: 'proxy' | 'controller',
  { context, npmVolumes, revision, archive }: BuildOptions,
): Promise<void> {
  const tag = `localhost/weir-${kind}`;
  const values = { NODE_IMAGE: NODE_IMAGE, VERSION: chartAppVersion(), REVISION: revision };
  const args = Object.entries(values).map(([name, value]) => `--build-arg=${name}=${value}`);
  const file = join(context, `Dockerfile.${kind}`);
  // With these flags, equal sources give images with equal bytes.
  const reproducible = ['--timestamp=0', '--pull-never'];
  await buildah('bud', ...reproducible, ...args, ...npmVolumes, `--tag=${tag}`, `--file=${file}`, context);
  await buildah('push', '--quiet', tag, `oci-archive:${archive}:${imageNames()[kind]}`);
  await buildah('rmi', tag);
}

const NPM_SETTINGS = [
  'registry',
  'cafile',
  'proxy',
  'https-proxy',
  'noproxy',
  'strict-ssl',
  'cache',
  'userconfig',
] as const;

type NpmSettings = Readonly<Record<(typeof NPM_SETTINGS)[number], string | undefined>>;

/**
 * Returns arguments of `buildah build` with which npm in a build uses the npm settings and the npm cache of the host. The files are
 * mounted only while the build runs, so no registry, credential or certificate ends up in a layer. Changes of the cache are
 * discarded.
 */
export async function hostNpmVolumes(scratch: string): Promise<string[]> {
  const settings = await hostNpmSettings();
  const {
    cache,
    userconfig,
    cafile,
    registry,
    proxy,
    noproxy,
    'https-proxy': httpsProxy,
    'strict-ssl': strict,
  } = settings;
  const certificates = cafile ?? process.env.NODE_EXTRA_CA_CERTS ?? process.env.SSL_CERT_FILE;
  const containerSettings = {
    registry,
    proxy,
    'https-proxy': httpsProxy,
    noproxy,
    'strict-ssl': strict,
    cafile: certificates === undefined ? undefined : '/run/certificates-outside.crt',
    cache: '/root/.npm',
    'prefer-offline': 'true',
    'update-notifier': 'false',
  };
  const lines = Object.entries(containerSettings).flatMap(([key, value]) =>
    value === undefined ? [] : [`${key}=${value}\n`],
  );
  const file = join(scratch, 'npmrc');
  writeFileSync(file, lines.join(''));
  return [
    volumeArgument(file, '/usr/local/etc/npmrc', 'ro'),
    ...(userconfig && existsSync(userconfig) ? [volumeArgument(userconfig, '/root/.npmrc', 'ro')] : []),
    ...(certificates && existsSync(certificates)
      ? [volumeArgument(certificates, '/run/certificates-outside.crt', 'ro')]
      : []),
    ...(cache && existsSync(cache) ? [volumeArgument(cache, '/root/.npm', 'O')] : []),
  ];
}

/** Runs npm in a folder without a package.json, because `npm config get` fails inside a workspace. */
async function hostNpmSettings(): Promise<NpmSettings> {
  const text = await runCommand('npm', ['config', 'get', ...NPM_SETTINGS, '--logs-max=0'], { cwd: tmpdir() });
  const value = (key: string): string | undefined => {
    const found = new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1]?.trim();
    return found === undefined || ['', 'null', 'undefined'].includes(found) ? undefined : found;
  };
  return Object.fromEntries(NPM_SETTINGS.map((key) => [key, value(key)])) as NpmSettings;
}

function volumeArgument(from: string, to: string, mode: 'ro' | 'O'): string {
  return `--volume=${from}:${to}:${mode}`;
}

export type WeirImages = {
  /** `proxy`, `controller` and `redis` are paths of archives for `ctr images import`. */
  readonly proxy: string;
  readonly controller: string;
  readonly redis: string;
  /** Names of the imported images, equal to the chart's defaults. */
  readonly names: Readonly<Record<'proxy' | 'controller' | 'redis', string>>;
};

/** Returns the images built from the current sources. The test must have called `requireProgram('images')`. */
export async function weirImages(): Promise<WeirImages> {
  const folder = programPath('weir-images');
  const now = new Date();
  utimesSync(folder, now, now);
  const archive = (name: string): string => join(folder, `${name}.tar`);
  return {
    proxy: archive('proxy'),
    controller: archive('controller'),
    redis: archive('redis'),
    names: imageNames(),
  };
}
