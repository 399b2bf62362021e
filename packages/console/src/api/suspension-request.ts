import type { RoutingTable, Suspension, SuspensionTarget } from '@weir/model';
import { entriesOf } from '@weir/model';
import type { TargetJson } from '../suspensions/suspension-object.ts';
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

/** The request that a body means, or an `ApiError`. A field that the type does not use is refused: it was meant to narrow. */
export function parseSuspensionBody(body: SuspensionBody, now: number): RequestedSuspension {
  return { target: parseTarget(body.target), message: body.message.trim(), until: parseUntil(body.until, now) };
}

function parseTarget(json: TargetJson): SuspensionTarget {
  const used: readonly string[] = FIELDS_BY_TARGET_TYPE[json.type];
  for (const name of ['tenant', 'namespace', 'service'] as const) {
    if (json[name] === undefined && used.includes(name)) {
      throw invalidRequestError(`body "target.${name}" is missing; type ${json.type} needs ${used.join(' and ')}`);
    }
    if (json[name] !== undefined && !used.includes(name)) {
      throw invalidRequestError(
        `body "target.${name}" is not used with type ${json.type}; use only ${used.join(' and ')}`,
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
  const until = RFC3339_PATTERN.test(text) ? Date.parse(text) : Number.NaN;
  const allowed = 'use a time in the future as RFC 3339, such as 2030-01-31T18:00:00Z';
  if (Number.isNaN(until)) throw invalidRequestError(`body "until" is ${JSON.stringify(text)}; ${allowed}`);
  if (until <= now) throw invalidRequestError(`body "until" is ${JSON.stringify(text)}, which has passed; ${allowed}`);
  return until;
}

/** Whether a Suspension that the request would take the place of lasts longer. */
export function wouldShortenSuspension(
  { target, until }: Pick<RequestedSuspension, 'target' | 'until'>,
  cutoffs: readonly Suspension[],
): boolean {
  if (until === null) return false;
  const name = suspensionNameFor(target);
  return cutoffs.some(
    (cutoff) =>
      cutoff.name === name && cutoff.origin.kind !== 'file' && (cutoff.until === null || cutoff.until > until),
  );
}

/**
 * Refuses a target that the table does not know: a mistyped name would cut nobody off, and nobody would notice. What has no
 * Service yet can be suspended with kubectl.
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

function unknownTargetError(what: string, command: string): ApiError {
  return new ApiError('UnknownTarget', `${what} is not known here; \`${command}\` lists what is`);
}

function invalidRequestError(message: string): ApiError {
  return new ApiError('InvalidRequest', message);
}
