import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { type SpawnedProcess, type SpawnOptions, spawnProcess } from '@weir/testkit';
import { programPath } from '../programs/require-program.ts';
import { runCommand } from '../programs/run-command.ts';
import { type NodeNetwork, POD_CIDR, setLink } from './network.ts';
import { cniConfig, containerdConfig, kubeletConfig, type NodePaths } from './node-config.ts';

export type ClusterNode = {
  readonly name: string;
  readonly address: string;
  /** Starts a process in the network of the node, as a pod with `hostNetwork` has it. */
  spawn(options: SpawnOptions): Promise<SpawnedProcess>;
  /** What kube-proxy, and whoever else, has told the kernel of the node: the text of nft(8). */
  nftRuleset(): Promise<string>;
  /** Pulls its plug out of the network, or puts it back: it goes on, and nobody hears of it. */
  setLink(state: 'in' | 'out'): void;
  /** Ends every process and pod at once, as a power failure does, and starts anew with what is on its disk. */
  reboot(): Promise<void>;
};

export type RunningNode = ClusterNode & { output(): string; close(): Promise<void> };

type NodeSettings = {
  readonly kubeconfig: string;
  readonly directory: string;
  readonly images: readonly string[];
  readonly staticPods: Readonly<Record<string, string>>;
};

/** containerd, kubelet and kube-proxy in the network namespace of a node. Returns before the node is ready. */
export async function startNode(
  place: NodeNetwork,
  { kubeconfig, directory, images, staticPods }: NodeSettings,
): Promise<RunningNode> {
  const { name, address, namespacePath } = place;
  const running: SpawnedProcess[] = [];
  const inside = (options: SpawnOptions): Promise<SpawnedProcess> => {
    const { command, args = [], name: title = command } = options;
    const enter = [`--net=${namespacePath}`, '--', command, ...args];
    return spawnProcess({ ...options, command: '/usr/bin/nsenter', args: enter, name: `${title} of ${name}` });
  };
  const launch = async (program: Parameters<typeof programPath>[0], args: string[], ready?: RegExp): Promise<void> => {
    const readyWhen = ready === undefined ? {} : { readyWhen: ready };
    running.push(
      await inside({ command: programPath(program), args, name: program, env: nodeEnvironment(), ...readyWhen }),
    );
  };
  const folders = writeNodeConfig(place, directory);
  for (const [file, text] of Object.entries(staticPods))
    writeFileSync(join(folders.directory, 'static-pods', file), text);
  const close = async (): Promise<void> => {
    // first who would start again what is ended
    for (const each of running.toReversed()) await each.stop('SIGKILL');
  };
  const bootContainerd = (): Promise<void> =>
    launch('containerd', ['--config', join(folders.directory, 'containerd.toml')], /containerd successfully booted/);
  const bootKubernetes = async (): Promise<void> => {
    await launch('kubelet', [
      `--kubeconfig=${kubeconfig}`,
      `--config=${join(folders.directory, 'kubelet.json')}`,
      `--hostname-override=${name}`,
      `--root-dir=${join(folders.directory, 'kubelet')}`,
      `--node-ip=${address}`,
      '--node-labels=role=loadbalancer',
    ]);
    await launch('kube-proxy', [
      `--kubeconfig=${kubeconfig}`,
      '--proxy-mode=nftables',
      `--hostname-override=${name}`,
      `--cluster-cidr=${POD_CIDR}`,
      '--conntrack-max-per-core=0',
    ]);
  };
  const reboot = async (): Promise<void> => {
    const [containerd, ...others] = running.splice(0);
    for (const each of others) await each.stop('SIGKILL');
    await killContainers(folders);
    await containerd?.stop('SIGKILL');
    await bootContainerd();
    await bootKubernetes();
  };
  try {
    await bootContainerd();
    for (const archive of images) await importImages(folders, archive);
    await bootKubernetes();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    name,
    address,
    spawn: inside,
    nftRuleset: () =>
      runCommand('/usr/bin/nsenter', [`--net=${namespacePath}`, '--', programPath('nft'), 'list', 'ruleset']),
    setLink: (state) => setLink(place, state),
    reboot,
    output: () => running.map((each) => each.output().slice(-4000)).join('\n'),
    close,
  };
}

async function importImages({ socket }: NodePaths, archive: string): Promise<void> {
  await runCommand(programPath('ctr'), ['--address', socket, '--namespace', 'k8s.io', 'images', 'import', archive]);
}

async function killContainers({ socket }: NodePaths): Promise<void> {
  const ctr = (...args: string[]): Promise<string> =>
    runCommand(programPath('ctr'), ['--address', socket, '--namespace', 'k8s.io', ...args]);
  const tasks = (await ctr('tasks', 'list', '--quiet')).split('\n').filter((id) => id !== '');
  // One that ended meanwhile is what is wanted.
  await Promise.all(tasks.map((id) => ctr('tasks', 'kill', '--signal', 'SIGKILL', id).catch(() => undefined)));
}

function writeNodeConfig(place: NodeNetwork, directory: string): NodePaths {
  const folders: NodePaths = {
    directory: join(directory, place.name),
    socket: join(directory, place.name, 'containerd.sock'),
    cniPlugins: dirname(programPath('host-local')),
    runc: programPath('runc'),
  };
  const write = (file: string, text: string): void => writeFileSync(join(folders.directory, file), text);
  for (const folder of ['cni', 'static-pods']) mkdirSync(join(folders.directory, folder), { recursive: true });
  write('cni/10-pods.conflist', cniConfig(place, folders));
  write('containerd.toml', containerdConfig(folders));
  write('kubelet.json', kubeletConfig(place, folders));
  return folders;
}

/** They start each other by name. */
function nodeEnvironment(): NodeJS.ProcessEnv {
  const folders = (['containerd-shim-runc-v2', 'runc', 'nft', 'ip'] as const).map((name) => dirname(programPath(name)));
  return { ...process.env, PATH: [...folders, process.env.PATH, '/usr/sbin', '/sbin'].filter(Boolean).join(delimiter) };
}
