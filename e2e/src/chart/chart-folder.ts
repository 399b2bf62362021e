import { existsSync, readFileSync } from 'node:fs';
import { parse } from 'yaml';

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
