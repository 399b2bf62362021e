import type { SuspensionItem } from '@weir/console';
import { UsageError } from '@weir/runtime/command-line';

/** Matches every name of a tenant, which may be any label value, and so every name of a namespace and of a Service. */
const NAME = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** The target of a Suspension in the JSON of the console's API. */
export type SuspensionTargetJson =
  | { readonly type: 'Tenant'; readonly tenant: string }
  | { readonly type: 'Namespace'; readonly namespace: string }
  | { readonly type: 'Service'; readonly namespace: string; readonly service: string };

/**
 * Returns the target of `weir suspend` and `weir resume`: the argument, written as `TENANT` or `NAMESPACE/SERVICE`, or the value of
 * `--namespace`. Throws `UsageError` unless exactly one of the two is given.
 */
export function suspensionTargetFor(argument: string | undefined, namespace: string | undefined): SuspensionTargetJson {
  if (argument !== undefined && namespace !== undefined)
    throw new UsageError(
      `"${argument}" and --namespace are both given; use NAMESPACE/SERVICE for one Service, or only --namespace for all Services of the namespace`,
    );
  if (namespace !== undefined) {
    if (!NAME.test(namespace))
      throw new UsageError(`invalid namespace "${namespace}": expected the name of one namespace`);
    return { type: 'Namespace', namespace };
  }
  if (argument === undefined)
    throw new UsageError('the target is missing: expected TENANT, NAMESPACE/SERVICE or --namespace NAME');
  return parseTarget(argument);
}

function parseTarget(text: string): Exclude<SuspensionTargetJson, { type: 'Namespace' }> {
  const parts = text.split('/');
  const [first = '', second] = parts;
  if (parts.length > 2 || !parts.every((part) => NAME.test(part)))
    throw new UsageError(`invalid target "${text}": expected TENANT or NAMESPACE/SERVICE`);
  return second === undefined
    ? { type: 'Tenant', tenant: first }
    : { type: 'Service', namespace: first, service: second };
}

export function parseServiceName(text: string): { readonly namespace: string; readonly name: string } {
  const [namespace = '', name = '', ...rest] = text.split('/');
  if (rest.length > 0 || !NAME.test(namespace) || !NAME.test(name))
    throw new UsageError(`invalid Service "${text}": expected NAMESPACE/SERVICE`);
  return { namespace, name };
}

/** Returns text such as `Service shop/web`. */
export function targetText(target: SuspensionItem['target']): string {
  switch (target.type) {
    case 'Tenant':
      return `tenant ${target.tenant}`;
    case 'Namespace':
      return `namespace ${target.namespace}`;
    case 'Service':
      return `Service ${target.namespace}/${target.service}`;
  }
}

/** Returns what follows `weir resume` to end the Suspensions of the target, such as `shop/web` or `--namespace shop`. */
export function targetArguments(target: SuspensionTargetJson): string {
  switch (target.type) {
    case 'Tenant':
      return target.tenant;
    case 'Namespace':
      return `--namespace ${target.namespace}`;
    case 'Service':
      return `${target.namespace}/${target.service}`;
  }
}

export function isSameTarget(a: SuspensionItem['target'], b: SuspensionItem['target']): boolean {
  return a.type === b.type && a.tenant === b.tenant && a.namespace === b.namespace && a.service === b.service;
}
