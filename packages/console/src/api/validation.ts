// A 400 says what is wrong, where, and what is allowed. Each property of a schema carries what is allowed as its
// `description`, which the OpenAPI document shows too.
import type { FastifySchemaValidationError } from 'fastify/types/schema.js';

/** What ajv adds with `verbose: true`. */
type VerboseError = FastifySchemaValidationError & {
  readonly data?: unknown;
  readonly parentSchema?: { readonly description?: string; readonly properties?: Readonly<Record<string, unknown>> };
};

export class InvalidRequestError extends Error {}

const PART_NAMES: Readonly<Record<string, string>> = {
  querystring: 'query parameter',
  params: 'path',
  body: 'body',
  headers: 'header',
};

/** The error of a request whose `part` (querystring, params, body) does not fit its schema. */
export function validationError(errors: readonly FastifySchemaValidationError[], part: string): InvalidRequestError {
  const sentences = (errors as readonly VerboseError[]).map((error) => validationMessageFor(error, part));
  return new InvalidRequestError([...new Set(sentences)].join('; '));
}

function validationMessageFor(error: VerboseError, part: string): string {
  const where = PART_NAMES[part] ?? part;
  const at = error.instancePath.slice(1).replaceAll('/', '.');
  const inside = at === '' ? '' : `${at}.`;
  if (error.keyword === 'additionalProperties') {
    const name = `${inside}${String(error.params.additionalProperty)}`;
    const allowed = Object.keys(error.parentSchema?.properties ?? {});
    return `${where} "${name}" is unknown; ${allowed.length === 0 ? 'none is allowed here' : `allowed: ${allowed.join(', ')}`}`;
  }
  if (error.keyword === 'required') {
    const name = String(error.params.missingProperty);
    const described = error.parentSchema?.properties?.[name] as { readonly description?: string } | undefined;
    return `${where} "${inside}${name}" is missing${described?.description === undefined ? '' : `; use ${described.description}`}`;
  }
  const allowed = error.parentSchema?.description ?? error.message ?? 'something else';
  return `${where}${at === '' ? '' : ` "${at}"`} is ${quoteValue(error.data)}; use ${allowed}`;
}

function quoteValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
