import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cacheDirectory } from '../programs/cache-directory.ts';
import { programPath } from '../programs/require-program.ts';
import { runCommand } from '../programs/run-command.ts';

/** Images lie below `folder`, and everything that buildah writes: the system's own images and settings are neither seen nor changed. */
export type ImageBuilder = {
  /** Runs buildah(1) and returns what it prints. */
  buildah(...args: string[]): Promise<string>;
  /** Runs anything else, where what it mounts is gone with it. */
  run(command: string, ...args: string[]): Promise<string>;
};

const SCRIPT = fileURLToPath(new URL('../../bin/image-builder', import.meta.url));

export function openImageBuilder(folder: string): ImageBuilder {
  const env = { ...process.env, ...prepareFolder(folder) };
  const program = programPath('buildah');
  // beside the launcher, where the packages were unpacked; a buildah of the system has all that it needs
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
  // the home directory is where the policy is looked for first
  const policies = path('home/.config/containers');
  // what an interrupted build has left
  rmSync(path('tmp'), { recursive: true, force: true });
  for (const each of [policies, path('tmp')]) mkdirSync(each, { recursive: true });
  // who may sign what: nothing is pulled, so nothing needs to be signed
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
