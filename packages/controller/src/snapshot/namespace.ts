import type { NamespaceObject } from '@weir/model';
import { DNS_LABEL } from './formats.ts';
import { readMeta } from './meta.ts';
import { type Projection, project } from './projection.ts';

export function projectNamespace(raw: unknown): Projection<NamespaceObject> {
  return project('Namespace', raw, (fields) => readMeta(fields, { name: DNS_LABEL, labels: true }));
}
