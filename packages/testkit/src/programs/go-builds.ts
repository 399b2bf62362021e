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
