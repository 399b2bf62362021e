import type { Manifest } from './rendering.ts';

/** Of what helm makes up: keys, certificates, passwords; and what is computed of them. */
const MADE_UP = '<made by helm>';
/** A program text or a dashboard: that it is there says enough. */
const LONGEST_TEXT = 4_000;

/** The same for each rendering, and not longer than one would read. */
export function stable(manifests: readonly Manifest[]): readonly unknown[] {
  return manifests.map((each) => {
    if (each.kind === 'CustomResourceDefinition') return { ...each, spec: '<that of charts/weir-crds/definitions>' };
    const kept =
      each.kind === 'Secret' ? { ...each, data: madeUp(each.data), stringData: madeUp(each.stringData) } : each;
    return JSON.parse(JSON.stringify(kept), (key, value: unknown) => stableField(key, value));
  });
}

function madeUp(data: unknown): unknown {
  if (typeof data !== 'object' || data === null) return undefined;
  return Object.fromEntries(Object.keys(data).map((key) => [key, MADE_UP]));
}

function stableField(key: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (key === 'checksum/secrets' || key === 'checksum/files' || key === 'caBundle') return MADE_UP;
  return value.length > LONGEST_TEXT ? `<${value.length} characters>` : value;
}
