import type { Manifest } from './rendering.ts';

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
