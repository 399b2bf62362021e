/** Programs that are built together, and kept together by their version. */
export type GoBuild = 'kubernetes' | 'kubernetes-node' | 'containerd' | 'echo-pod' | 'coredns' | 'helm';

type About = {
  /** A folder beside `src`, whose go.mod and go.sum pin every module. */
  readonly folder: string;
  /** Equal to the one in its go.mod; a test compares them. */
  readonly version: string;
  /** Said before it begins, so that nobody takes it for hanging. */
  readonly effort: string;
  /** Variables of its code that hold its version: left out, clients that compare versions would refuse it. */
  readonly versionVariables?: (version: string) => Readonly<Record<string, string>>;
  readonly tags?: readonly string[];
  /** Built into the same folder for the programs of the catalog, which look for them beside themselves. */
  readonly alongside?: readonly string[];
};

const plugins = 'github.com/containernetworking/plugins/plugins';

export const goBuilds: Readonly<Record<GoBuild, About>> = {
  kubernetes: {
    folder: 'kubernetes',
    version: '1.36.3',
    effort: 'about 200 Go modules, then 5 to 10 minutes of compiling on two cores, once',
    versionVariables: kubernetesVersion,
  },
  'kubernetes-node': {
    folder: 'kubernetes',
    version: '1.36.3',
    effort: 'about 200 Go modules, then 4 to 10 minutes of compiling on two cores, once',
    versionVariables: kubernetesVersion,
  },
  containerd: {
    folder: 'containerd',
    version: '2.4.2',
    effort: 'about 150 Go modules, then 3 to 10 minutes of compiling on two cores, once',
    tags: ['no_btrfs', 'no_zfs', 'no_devmapper'],
    alongside: [`${plugins}/main/bridge`, `${plugins}/main/loopback`],
  },
  'echo-pod': { folder: 'echo-pod', version: '1.1.0', effort: 'a few seconds of compiling' },
  coredns: {
    folder: 'coredns',
    version: '1.15.0',
    effort: 'about 60 Go modules, then 1 to 3 minutes of compiling on two cores, once',
  },
  helm: {
    folder: 'helm',
    version: '4.3.1',
    effort: 'about 130 Go modules, then 3 to 5 minutes of compiling on two cores, once',
    versionVariables: (version) => ({ 'helm.sh/helm/v4/internal/version.version': `v${version}` }),
  },
};

function kubernetesVersion(version: string): Record<string, string> {
  const [major = '', minor = ''] = version.split('.');
  const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`k8s.io/component-base/version.${name}`, value]),
  );
}
