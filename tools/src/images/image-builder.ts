import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDirectory } from '../programs/cache-directory.ts';
import { programPath } from '../programs/require-program.ts';
import { runCommand } from '../programs/run-command.ts';

/** Runs buildah with storage and settings below `folder`; the host's images and settings are neither read nor changed. */
export type ImageBuilder = {
  /** Runs buildah(1) and returns what it prints. */
  buildah(...args: string[]): Promise<string>;
  /** Runs another command in a new mount namespace, set up as for buildah. Mounts of the command disappear when the command exits. */
  run(command: string, ...args: string[]): Promise<string>;
};

const SCRIPT = fileURLToPath(new URL('../../bin/image-builder', import.meta.url));

export function openImageBuilder(folder: string): ImageBuilder {
  const env = { ...process.env, ...prepareFolder(folder) };
  const program = programPath('buildah');
  // The folder exists if buildah is the launcher in the cache. A buildah on PATH needs no unpacked packages.
  const root = join(dirname(program), '..', 'root');
  const unpacked = existsSync(root) ? root : 'none';
  const enter = (args: string[]): Promise<string> => runCommand(SCRIPT, [cacheDirectory(), unpacked, ...args], { env });
  return {
    buildah: (...args) => enter([unpacked === 'none' ? program : '/usr/bin/buildah', ...args]),
    run: (...args) => enter(args),
  };
}

function prepareFolder(folder: string): NodeJS.ProcessEnv {
  const path = (name: string): string => join(folder, name);
  // buildah prefers a policy file in the home directory to the policy file of the system.
  const policies = path('home/.config/containers');
  // Removes the remains of an interrupted build.
  rmSync(path('tmp'), { recursive: true, force: true });
  for (const each of [policies, path('tmp')]) mkdirSync(each, { recursive: true });
  // Accepting unsigned images is safe, because the builder pulls no image.
  writeFileSync(join(policies, 'policy.json'), JSON.stringify({ default: [{ type: 'insecureAcceptAnything' }] }));
  writeFileSync(path('registries.conf'), '');
  writeFileSync(path('containers.conf'), '');
  writeFileSync(
    path('storage.conf'),
    `[storage]\ndriver = "vfs"\ngraphroot = "${path('storage')}"\nrunroot = "${path('run')}"\n`,
  );
  return {
    HOME: path('home'),
    TMPDIR: path('tmp'),
    XDG_CONFIG_HOME: path('home/.config'),
    XDG_RUNTIME_DIR: path('run'),
    CONTAINERS_STORAGE_CONF: path('storage.conf'),
    CONTAINERS_CONF: path('containers.conf'),
    CONTAINERS_REGISTRIES_CONF: path('registries.conf'),
    STORAGE_DRIVER: 'vfs',
    BUILDAH_ISOLATION: 'chroot',
  };
}
