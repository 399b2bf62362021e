import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { spawnProcess } from '@weir/testkit';
import { programPath } from '@weir/tools';
import { parse, parseAllDocuments } from 'yaml';

/** What helm printed. */
export interface HelmResult {
  readonly ok: boolean;
  /** Of stdout alone. */
  readonly stdout: string;
  /** Of both. */
  readonly output: string;
}

/** Runs helm, which knows of no cluster but that of `env`. URLs among the arguments are paths. */
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

/** A file of the chart, or "" where it has none. */
export function chartFile(chart: URL, path: string): string {
  const file = new URL(path, chart);
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** One of the installations that the chart is tested as: a file of e2e/test/chart/values, and where it goes. */
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

/** The cluster that manifests are rendered for, whatever version helm knows itself; it serves what the chart may ask for. */
const CLUSTER_FLAGS = [
  '--kube-version=1.36.0',
  '--api-versions=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy',
  '--api-versions=monitoring.coreos.com/v1/PodMonitor',
  '--api-versions=monitoring.coreos.com/v1/PrometheusRule',
];

export const valuesFile = ({ name }: Installation): URL =>
  new URL(`../../test/chart/values/${name}.yaml`, import.meta.url);

/** What helm would apply, hooks included. Throws what helm says. */
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
  const place = ['template', release, WEIR_CHART, `--namespace=${namespace}`, '--values', valuesFile(installation)];
  const { ok, stdout, output } = await runHelm([...place, ...CLUSTER_FLAGS, ...args]);
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

/** Of what helm makes up: keys, certificates, passwords; and what is computed of them. */
const RANDOM_VALUE = '<made by helm>';
/** A program text or a dashboard: that it is there says enough. */
const MAX_TEXT_CHARACTERS = 4_000;

/** The same for each rendering, and not longer than one would read. */
export function normalizeManifests(manifests: readonly Manifest[]): readonly unknown[] {
  return manifests.map((each) => {
    if (each.kind === 'CustomResourceDefinition') return { ...each, spec: '<that of charts/weir-crds/definitions>' };
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
