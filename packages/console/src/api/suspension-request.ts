import type { RoutingTable, Suspension, SuspensionTarget } from '@weir/model';
import { entriesOf, isCalendarDay } from '@weir/model';
import type { TargetJson } from '../suspensions/suspension-item.ts';
import { suspensionNameFor } from '../suspensions/suspension-object.ts';
import type { SuspensionRequest } from '../suspensions/suspension-writer.ts';
import { ApiError } from './api-error.ts';

export interface SuspensionBody {
  readonly target: TargetJson;
  readonly message: string;
  readonly until?: string;
}

type RequestedSuspension = Pick<SuspensionRequest, 'target' | 'message' | 'until'>;

const FIELDS_BY_TARGET_TYPE = {
  Tenant: ['tenant'],
  Namespace: ['namespace'],
  Service: ['namespace', 'service'],
} as const;

/**
 * Parses the body of a request. Throws `ApiError` InvalidRequest if the body is wrong or contains a name that the target's type does not
 * use. If such a name were ignored, more would be suspended than the user expects.
 */
export function parseSuspensionBody(body: SuspensionBody, now: number): RequestedSuspension {
  return { target: parseTarget(body.target), message: body.message.trim(), until: parseUntil(body.until, now) };
}

function parseTarget(json: TargetJson): SuspensionTarget {
  const required: readonly string[] = FIELDS_BY_TARGET_TYPE[json.type];
  for (const name of ['tenant', 'namespace', 'service'] as const) {
    if (json[name] === undefined && required.includes(name)) {
      throw invalidRequestError(`body "target.${name}" is missing; type ${json.type} needs ${required.join(' and ')}`);
    }
    if (json[name] !== undefined && !required.includes(name)) {
      throw invalidRequestError(
        `body "target.${name}" is not used with type ${json.type}; use only ${required.join(' and ')}`,
      );
    }
  }
  const { type, tenant = '', namespace = '', service = '' } = json;
  switch (type) {
    case 'Tenant':
      return { kind: 'tenant', tenant };
    case 'Namespace':
      return { kind: 'namespace', namespace };
    case 'Service':
      return { kind: 'service', namespace, service };
  }
}

const RFC3339_PATTERN = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

function parseUntil(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  const until = RFC3339_PATTERN.test(text) && isCalendarDay(text) ? Date.parse(text) : Number.NaN;
  const allowed = 'use a time in the future as RFC 3339, such as 2030-01-31T18:00:00Z';
  if (Number.isNaN(until)) throw invalidRequestError(`body "until" is ${JSON.stringify(text)}; ${allowed}`);
  if (until <= now) throw invalidRequestError(`body "until" is ${JSON.stringify(text)}, which has passed; ${allowed}`);
  return until;
}

/** Whether an existing Suspension of the same target ends later than the request. Suspensions that are defined in files do not count. */
export function wouldShortenSuspension(
  { target, until }: Pick<RequestedSuspension, 'target' | 'until'>,
  suspensions: readonly Suspension[],
): boolean {
  if (until === null) return false;
  const name = suspensionNameFor(target);
  return suspensions.some(
    (suspension) =>
      suspension.name === name &&
      suspension.origin.kind !== 'file' &&
      (suspension.until === null || suspension.until > until),
  );
}

/**
 * Throws if the target is not in the table, because a Suspension with a mistyped name would have no effect. For a target that has no
 * Services yet, users can create a Suspension with kubectl.
 */
export function refuseUnknownTarget(target: SuspensionTarget, table: RoutingTable): void {
  const services = entriesOf(table, 'service');
  const tenants = entriesOf(table, 'tenant');
  switch (target.kind) {
    case 'tenant': {
      const known = new Set([...tenants.map(({ name }) => name), ...services.map((entry) => entry.tenant)]);
      if (!known.has(target.tenant)) throw unknownTargetError(`tenant "${target.tenant}"`, 'weir get tenants');
      return;
    }
    case 'namespace': {
      const known = new Set([
        ...tenants.flatMap((entry) => entry.namespaces),
        ...services.map((each) => each.namespace),
      ]);
      if (!known.has(target.namespace))
        throw unknownTargetError(`namespace "${target.namespace}"`, 'weir get services');
      return;
    }
    case 'service': {
      const { namespace, service } = target;
      if (!services.some((entry) => entry.namespace === namespace && entry.name === service)) {
        throw unknownTargetError(`Service "${namespace}/${service}"`, 'weir get services');
      }
    }
  }
}

function unknownTargetError(target: string, command: string): ApiError {
  return new ApiError('UnknownTarget', `${target} does not exist in this fleet; \`${command}\` lists what exists`);
}

function invalidRequestError(message: string): ApiError {
  return new ApiError('InvalidRequest', message);
}
