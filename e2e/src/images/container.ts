// Runs a container with runc in the network namespace of the host, under the restrictions of a strict Kubernetes security context.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SpawnedProcess, spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { UnpackedImage } from './unpacked-image.ts';

export interface ContainerOptions {
  readonly name: string;
  /** Replaces the image's ENTRYPOINT, like `command` in a pod's container. */
  readonly command?: readonly string[];
  /** Replaces the image's CMD, like `args` in a pod's container. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Read-only bind mounts. Maps each path in the container to a path on the host. */
  readonly readOnlyMounts?: Readonly<Record<string, string>>;
  /** Empty folders that the container may write to. */
  readonly writableFolders?: readonly string[];
  /** The user id. Default: the user of the image. */
  readonly user?: number;
  /** The capabilities of the container. Default: none. */
  readonly capabilities?: readonly 'CAP_NET_BIND_SERVICE'[];
  /** Whether the container may exit by itself. */
  readonly mayExit?: boolean;
  readonly readyWhen?: RegExp;
}

export interface Container {
  readonly process: SpawnedProcess;
  /** Returns the text of `/proc/PID/status` of the container's first process, which shows its user and capabilities. */
  procStatus(): string;
  /** Runs another command in the container, as a probe does, and returns its output. */
  exec(...command: string[]): string;
}

/** Starts a container with a read-only root file system, only the given capabilities, and no way to gain privileges. */
export async function startContainer(image: UnpackedImage, options: ContainerOptions): Promise<Container> {
  const { name, mayExit = false, readyWhen } = options;
  const bundle = mkdtempSync(join(tmpdir(), `${name}-`));
  writeFileSync(join(bundle, 'config.json'), JSON.stringify(runtimeSpec(image, options)));
  const state = join(tmpdir(), 'runc');
  const runc = (...args: string[]): string =>
    execFileSync(programPath('runc'), ['--root', state, ...args], { encoding: 'utf8' });
  const process = await spawnProcess({
    name,
    command: programPath('runc'),
    args: ['--root', state, 'run', '--bundle', bundle, name],
    mayExit,
    ...(readyWhen === undefined ? {} : { readyWhen }),
  });
  return {
    process,
    procStatus: () => readFileSync(`/proc/${(JSON.parse(runc('state', name)) as { pid: number }).pid}/status`, 'utf8'),
    exec: (...command) => runc('exec', name, ...command),
  };
}

/** Returns an OCI runtime specification, with the relevant parts of the specification that containerd generates for a pod. */
function runtimeSpec({ rootfs, config }: UnpackedImage, options: ContainerOptions): object {
  const {
    command = config.Entrypoint ?? [],
    args = config.Cmd ?? [],
    env = {},
    readOnlyMounts = {},
    writableFolders = [],
    capabilities = [],
  } = options;
  const [uid = 0, gid = uid] =
    options.user === undefined ? (config.User ?? '0').split(':').map(Number) : [options.user];
  return {
    ociVersion: '1.0.2',
    process: {
      user: { uid, gid },
      args: [...command, ...args],
      env: [...(config.Env ?? []), ...Object.entries(env).map(([key, value]) => `${key}=${value}`)],
      cwd: config.WorkingDir ?? '/',
      capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
      noNewPrivileges: true,
    },
    root: { path: rootfs, readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'strictatime', 'mode=755'] },
      ...writableFolders.map((destination) => ({
        destination,
        type: 'tmpfs',
        source: 'tmpfs',
        options: [`uid=${uid}`],
      })),
      ...Object.entries(readOnlyMounts).map(([destination, source]) => ({
        destination,
        type: 'bind',
        source,
        options: ['rbind', 'ro'],
      })),
    ],
    linux: { namespaces: ['pid', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
  };
}
