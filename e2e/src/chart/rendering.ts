import { parseAllDocuments } from 'yaml';
import { WEIR_CHART } from './chart-folder.ts';
import { runHelm } from './helm.ts';

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
