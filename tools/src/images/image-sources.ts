import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const CHECKOUT: string = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Returns the paths of the files that images are built from: the files that .dockerignore allows and that git does not ignore.
 * Includes untracked files.
 */
export function buildContextFiles(): string[] {
  const allowed = readFileSync(join(CHECKOUT, '.dockerignore'), 'utf8').matchAll(/^!(.+)$/gm);
  const patterns = [...allowed].flatMap(([, path]) => [`:(glob)${path}`, `:(glob)${path}/**`]);
  const dockerfiles = ['.dockerignore', 'Dockerfile.proxy', 'Dockerfile.controller'];
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard', '--', ...dockerfiles, ...patterns];
  const listed = execFileSync('git', args, { cwd: CHECKOUT, encoding: 'utf8', maxBuffer: 1 << 26 });
  // git also lists files that were deleted in the working tree.
  return listed.split('\0').filter((path) => path !== '' && existsSync(join(CHECKOUT, path)));
}

export function readFromCheckout(path: string): Buffer {
  return readFileSync(join(CHECKOUT, path));
}

/** Copies the build context, so that an edit during a build does not change the result. */
export function copyBuildContext(into: string): void {
  for (const path of buildContextFiles()) cpSync(join(CHECKOUT, path), join(into, path));
}

/** Returns the digest of everything that the images are built from. The digest names the folder of the images in the cache. */
export function imagesFingerprint(): string {
  return digestOf(
    [baseImagesFingerprint(), JSON.stringify(imageNames())],
    [...buildContextFiles(), ...recipeFiles('build-images')],
  );
}

/** Returns the digest of the inputs of the base images: processor architecture, Node, the Dockerfile of Redis and the build scripts. */
export function baseImagesFingerprint(): string {
  const files = [...recipeFiles('build-base-images'), 'tools/images/Dockerfile.redis'];
  return digestOf([process.arch, npmNodeBinary().version], files);
}

function recipeFiles(name: string): string[] {
  return [`tools/src/images/${name}.ts`, 'tools/bin/image-builder'];
}

function digestOf(words: readonly string[], paths: readonly string[]): string {
  const hash = createHash('sha256').update(words.join('\0'));
  for (const path of paths) hash.update(`\0${path}\0`).update(readFromCheckout(path));
  return hash.digest('hex').slice(0, 16);
}

export type ImageKind = 'proxy' | 'controller' | 'redis';

/** Returns the names of the images, which equal the defaults of the chart. */
export function imageNames(): Readonly<Record<ImageKind, string>> {
  const version = chartAppVersion();
  return {
    proxy: `ghcr.io/weir-dev/weir-proxy:${version}`,
    controller: `ghcr.io/weir-dev/weir-controller:${version}`,
    redis: 'docker.io/library/redis:7.2-bookworm',
  };
}

export function chartAppVersion(): string {
  const [, version] =
    /^appVersion: *["']?([\w.+-]+)/m.exec(readFromCheckout('charts/weir/Chart.yaml').toString()) ?? [];
  if (version === undefined)
    throw new Error('charts/weir/Chart.yaml has no appVersion: add the version that names the images');
  return version;
}

/** Returns the Node program of the npm package `node`, and not the launcher that `ensure-node-runs` may have written. */
export function npmNodeBinary(): { readonly path: string; readonly version: string } {
  const description = createRequire(import.meta.url).resolve('node/package.json');
  const { version } = JSON.parse(readFileSync(description, 'utf8')) as { version: string };
  return { path: join(dirname(description), 'bin', 'node'), version };
}
