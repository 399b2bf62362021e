// A container as Kubernetes makes one with a strict security context: by runc, in the network of the machine.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SpawnedProcess, spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';
import type { UnpackedImage } from './unpacked-image.ts';

export interface ContainerOptions {
  readonly name: string;
  /** In place of the image's ENTRYPOINT, as `kubectl exec` has it. */
  readonly command?: readonly string[];
  /** In place of its CMD. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** By the path in the container: a file or folder from outside, read-only. */
  readonly readOnlyMounts?: Readonly<Record<string, string>>;
  /** Folders that are empty and may be written to. */
  readonly writableFolders?: readonly string[];
  /** In place of the image's. */
  readonly user?: number;
  /** Default none. */
  readonly capabilities?: readonly 'CAP_NET_BIND_SERVICE'[];
  /** It ends by itself. */
  readonly mayExit?: boolean;
  readonly readyWhen?: RegExp;
}

/** Also of what is in it. */
export interface Container {
  readonly process: SpawnedProcess;
  /** `/proc/…/status` of its first process: whose it is and what it may. */
  procStatus(): string;
  /** Runs a further command in it, as a probe does, and returns what it prints. */
  exec(...command: string[]): string;
}

/** Root file system read-only, every capability dropped but those named, and no way to get more. */
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

/** The OCI runtime specification; what containerd writes for a pod, as far as it matters here. */
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
