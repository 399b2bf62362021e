import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';
import { parse, parseAllDocuments } from 'yaml';

/** The result of a helm command. */
export interface HelmResult {
  readonly ok: boolean;
  readonly stdout: string;
  /** Stdout and stderr. */
  readonly output: string;
}

/** Runs helm, without a cluster unless `env` sets KUBECONFIG. Converts URL arguments to paths. */
export async function runHelm(args: readonly (string | URL)[], env: NodeJS.ProcessEnv = {}): Promise<HelmResult> {
  const running = await spawnProcess({
    command: programPath('helm'),
    name: 'helm',
    args: args.map((each) => (each instanceof URL ? fileURLToPath(each) : each)),
    env: { ...process.env, KUBECONFIG: '/dev/null', ...env },
    mayExit: true,
  });
  const { code } = await running.exited;
  return { ok: code === 0, stdout: running.stdout(), output: running.output() };
}

export const CHARTS: URL = new URL('../../../charts/', import.meta.url);
export const WEIR_CHART: URL = new URL('weir/', CHARTS);
export const CRDS_CHART: URL = new URL('weir-crds/', CHARTS);

export interface ChartMetadata {
  readonly name: string;
  readonly version: string;
  readonly appVersion?: string;
  readonly dependencies?: readonly { readonly name: string; readonly alias?: string; readonly version: string }[];
}

export function chartMetadata(chart: URL): ChartMetadata {
  return parse(readFileSync(new URL('Chart.yaml', chart), 'utf8')) as ChartMetadata;
}

/** Returns the text of a file of the chart, or "" if the file does not exist. */
export function chartFile(chart: URL, path: string): string {
  const file = new URL(path, chart);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** An installation of the chart in a test. The file e2e/test/chart/values/NAME.yaml contains its values. */
export interface Installation {
  readonly name: string;
  readonly release: string;
  readonly namespace: string;
}

const DEFAULT_RELEASE = { release: 'weir', namespace: 'weir-system' };

export const INSTALLATIONS: readonly Installation[] = [
  { name: 'default', ...DEFAULT_RELEASE },
  { name: 'external-redis', ...DEFAULT_RELEASE },
  { name: 'classless', ...DEFAULT_RELEASE },
  { name: 'existing-secrets', ...DEFAULT_RELEASE },
  { name: 'minimal', release: 'small', namespace: 'weir-system' },
  { name: 'everything', release: 'edge', namespace: 'weir-edge' },
];

/** The Kubernetes version and APIs for which helm renders. Set explicitly, because the defaults depend on helm's version. */
const CLUSTER_FLAGS = [
  '--kube-version=1.36.0',
  '--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy',
  '--api-versions=monitoring.coreos.com/v1/PodMonitor',
  '--api-versions=monitoring.coreos.com/v1/PrometheusRule',
];

export const valuesFile = ({ name }: Installation): URL =>
  new URL(`../../test/chart/values/${name}.yaml`, import.meta.url);

/** Returns the manifests that helm would apply, including hooks. If helm fails, throws an error with helm's output. */
export async function renderManifests(
  installation: Installation,
  ...args: readonly string[]
): Promise<readonly Manifest[]> {
  const documents = parseAllDocuments(await renderChart(installation, ...args));
  if (!Array.isArray(documents)) return [];
  return documents.map((document) => document.toJS() as Manifest | null).filter((each) => each !== null);
}

export async function renderChart(installation: Installation, ...args: readonly string[]): Promise<string> {
  const { release, namespace } = installation;
  const target = ['template', release, WEIR_CHART, `--namespace=${namespace}`, '--values', valuesFile(installation)];
  const { ok, stdout, output } = await runHelm([...target, ...CLUSTER_FLAGS, ...args]);
  if (!ok) throw new Error(output);
  return stdout;
}

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** The placeholder for keys, certificates and passwords that helm generates, and for values computed from them. */
const RANDOM_VALUE = '<made by helm>';
/** The maximum length of a text. `normalizeManifests` replaces a longer text, such as a script or a dashboard, by its length. */
const MAX_TEXT_CHARACTERS = 4_000;

/** Replaces random values and long texts, so that renderings can be compared and read. */
export function normalizeManifests(manifests: readonly Manifest[]): readonly unknown[] {
  return manifests.map((each) => {
    if (each.kind === 'CustomResourceDefinition')
      return { ...each, spec: '<the spec in charts/weir-crds/definitions>' };
    const kept =
      each.kind === 'Secret' ? { ...each, data: maskValues(each.data), stringData: maskValues(each.stringData) } : each;
    return JSON.parse(JSON.stringify(kept), (key, value: unknown) => normalizeField(key, value));
  });
}

function maskValues(data: unknown): unknown {
  if (typeof data !== 'object' || data === null) return undefined;
  return Object.fromEntries(Object.keys(data).map((key) => [key, RANDOM_VALUE]));
}

function normalizeField(key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (key === 'checksum/secrets' || key === 'checksum/files' || key === 'caBundle') return RANDOM_VALUE;
  return value.length > MAX_TEXT_CHARACTERS ? `<${value.length} characters>` : value;
}
