import type { NamespaceObject } from '@weir/model';
import { DNS_LABEL } from './formats.ts';
import { readMeta } from './meta.ts';
import { type ParseResult, parseObject } from './projection.ts';

export function parseNamespace(raw: unknown): ParseResult<NamespaceObject> {
  return parseObject('Namespace', raw, (fields) => readMeta(fields, { name: DNS_LABEL, labels: true }));
}
