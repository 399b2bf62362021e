import { UsageError } from '@weir/runtime';

/** The target of a Suspension in the JSON of the console's API. */
export type SuspensionTargetJson =
  | { readonly type: 'Tenant'; readonly tenant: string }
  | { readonly type: 'Service'; readonly namespace: string; readonly service: string };

/** Parses the target of a Suspension, written as `TENANT` or `NAMESPACE/SERVICE`. */
export function parseSuspensionTarget(text: string): SuspensionTargetJson {
  const parts = text.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2 || first === '' || second === '') {
    throw new UsageError(`invalid target "${text}": expected TENANT or NAMESPACE/SERVICE`);
  }
  return second === undefined
    ? { type: 'Tenant', tenant: first }
    : { type: 'Service', namespace: first, service: second };
}

export function parseServiceName(text: string): { readonly namespace: string; readonly name: string } {
  const target = parseSuspensionTarget(text);
  if (target.type === 'Tenant') throw new UsageError(`invalid Service "${text}": expected NAMESPACE/SERVICE`);
  return { namespace: target.namespace, name: target.service };
}

export function targetText(target: SuspensionTargetJson): string {
  return target.type === 'Tenant' ? `tenant ${target.tenant}` : `Service ${target.namespace}/${target.service}`;
}

export function isSameTarget(a: SuspensionTargetJson, b: Readonly<Record<string, unknown>>): boolean {
  if (a.type === 'Tenant') return b.type === 'Tenant' && b.tenant === a.tenant;
  return b.type === 'Service' && b.namespace === a.namespace && b.service === a.service;
}
