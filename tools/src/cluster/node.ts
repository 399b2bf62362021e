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
  /** Starts a process in the network namespace of the node, like a pod with `hostNetwork`. */
  spawn(options: SpawnOptions): Promise<SpawnedProcess>;
  /** Returns the nftables rules of the node's namespace, as nft(8) prints them. */
  nftRuleset(): Promise<string>;
  /** Disconnects the node from the network, or connects the node again; the processes keep running. */
  setLink(state: 'up' | 'down'): void;
  /** Kills every process and pod, as a power failure does, and starts the node again with the data on its disk. */
  reboot(): Promise<void>;
};

export type RunningNode = ClusterNode & { output(): string; close(): Promise<void> };

type NodeSettings = {
  readonly kubeconfig: string;
  readonly directory: string;
  readonly images: readonly string[];
  readonly staticPods: Readonly<Record<string, string>>;
};

/** Starts containerd, kubelet and kube-proxy in the network namespace of a node. Resolves before the node is ready. */
export async function startNode(
  network: NodeNetwork,
  { kubeconfig, directory, images, staticPods }: NodeSettings,
): Promise<RunningNode> {
  const { name, address, namespacePath } = network;
  const running: SpawnedProcess[] = [];
  const spawnInNamespace = (options: SpawnOptions): Promise<SpawnedProcess> => {
    const { command, args = [], name: title = command } = options;
    const enter = [`--net=${namespacePath}`, '--', command, ...args];
    return spawnProcess({ ...options, command: '/usr/bin/nsenter', args: enter, name: `${title} of ${name}` });
  };
  const launch = async (program: Parameters<typeof programPath>[0], args: string[], ready?: RegExp): Promise<void> => {
    const readyWhen = ready === undefined ? {} : { readyWhen: ready };
    running.push(
      await spawnInNamespace({
        command: programPath(program),
        args,
        name: program,
        env: nodeEnvironment(),
        ...readyWhen,
      }),
    );
  };
  const paths = writeNodeConfig(network, directory);
  for (const [file, text] of Object.entries(staticPods))
    writeFileSync(join(paths.directory, 'static-pods', file), text);
  const close = async (): Promise<void> => {
    // Stops kubelet before containerd, because kubelet would restart containers.
    for (const process of running.toReversed()) await process.stop('SIGKILL');
  };
  const bootContainerd = (): Promise<void> =>
    launch('containerd', ['--config', join(paths.directory, 'containerd.toml')], /containerd successfully booted/);
  const bootKubernetes = async (): Promise<void> => {
    await launch('kubelet', [
      `--kubeconfig=${kubeconfig}`,
      `--config=${join(paths.directory, 'kubelet.json')}`,
      `--hostname-override=${name}`,
      `--root-dir=${join(paths.directory, 'kubelet')}`,
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
    for (const process of others) await process.stop('SIGKILL');
    await killContainers(paths);
    await containerd?.stop('SIGKILL');
    await bootContainerd();
    await bootKubernetes();
  };
  try {
    await bootContainerd();
    for (const archive of images) await importImages(paths, archive);
    await bootKubernetes();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    name,
    address,
    spawn: spawnInNamespace,
    nftRuleset: () =>
      runCommand('/usr/bin/nsenter', [`--net=${namespacePath}`, '--', programPath('nft'), 'list', 'ruleset']),
    setLink: (state) => setLink(network, state),
    reboot,
    output: () => running.map((process) => process.output().slice(-4000)).join('\n'),
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
  // The error is ignored, because a task that has exited after the listing needs no signal.
  await Promise.all(tasks.map((id) => ctr('tasks', 'kill', '--signal', 'SIGKILL', id).catch(() => undefined)));
}

function writeNodeConfig(network: NodeNetwork, directory: string): NodePaths {
  const paths: NodePaths = {
    directory: join(directory, network.name),
    socket: join(directory, network.name, 'containerd.sock'),
    cniPlugins: dirname(programPath('host-local')),
    runc: programPath('runc'),
  };
  const write = (file: string, text: string): void => writeFileSync(join(paths.directory, file), text);
  for (const folder of ['cni', 'static-pods']) mkdirSync(join(paths.directory, folder), { recursive: true });
  write('cni/10-pods.conflist', cniConfig(network, paths));
  write('containerd.toml', containerdConfig(paths));
  write('kubelet.json', kubeletConfig(network, paths));
  return paths;
}

/** Returns an environment whose PATH contains the folders of all programs of a node, because the programs start each other by name. */
function nodeEnvironment(): NodeJS.ProcessEnv {
  const folders = (['containerd-shim-runc-v2', 'runc', 'nft', 'ip'] as const).map((name) => dirname(programPath(name)));
  return { ...process.env, PATH: [...folders, process.env.PATH, '/usr/sbin', '/sbin'].filter(Boolean).join(delimiter) };
}
