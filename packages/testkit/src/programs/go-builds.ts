/** A folder beside `src`, whose go.mod and go.sum pin every module; its programs are built together. */
export type GoBuild = 'kubernetes' | 'helm';

type About = {
  /** Equal to the one in its go.mod; a test compares them. */
  readonly version: string;
  /** Said before it begins, so that nobody takes it for hanging. */
  readonly effort: string;
  /** Variables of its code that hold its version: left out, clients that compare versions would refuse it. */
  readonly versionVariables: (version: string) => Readonly<Record<string, string>>;
};

export const goBuilds: Readonly<Record<GoBuild, About>> = {
  kubernetes: {
    version: '1.36.3',
    effort: 'about 200 Go modules, then 5 to 10 minutes of compiling on two cores, once',
    versionVariables: (version) => {
      const [major = '', minor = ''] = version.split('.');
      const values = { gitVersion: `v${version}`, gitMajor: major, gitMinor: minor };
      const paths = Object.entries(values).map(([name, value]) => [`k8s.io/component-base/version.${name}`, value]);
      return Object.fromEntries(paths);
    },
  },
  helm: {
    version: '4.3.1',
    effort: 'about 130 Go modules, then 3 to 5 minutes of compiling on two cores, once',
    versionVariables: (version) => ({ 'helm.sh/helm/v4/internal/version.version': `v${version}` }),
  },
};
