import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { DEFAULT_USAGE_STEP, USAGE_STEPS } from '@weir/model';
import type { Authenticator } from '../access/authenticator.ts';
import { TOKEN_AUDIENCE } from '../access/token-reviews.ts';
import { SERIES_STEPS } from '../usage/tenant-series.ts';

// Schemas of requests and responses. The `description` of a schema names the allowed values. This text appears in 400 responses and in the
// OpenAPI document.

/** Matches names of namespaces and Services (RFC 1123 labels). */
const DNS_LABEL_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$';
/** Matches names of tenants, which may be any label value. */
const LABEL_VALUE_PATTERN = '^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$';
/** Matches names of cluster-scoped objects (RFC 1123 subdomains). */
const OBJECT_NAME_PATTERN = '^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$';

export const namespaceSchema: object = {
  type: 'string',
  pattern: DNS_LABEL_PATTERN,
  description: 'the name of a namespace: lower-case letters, digits and -',
};

export const serviceSchema: object = {
  type: 'string',
  pattern: DNS_LABEL_PATTERN,
  description: 'the name of a Service: lower-case letters, digits and -',
};

export const tenantSchema: object = {
  type: 'string',
  pattern: LABEL_VALUE_PATTERN,
  description: 'the name of a tenant: letters, digits, -, _ and .',
};

export const suspensionNameSchema: object = {
  type: 'string',
  pattern: OBJECT_NAME_PATTERN,
  description: 'the name of a Suspension: lower-case letters, digits, - and .',
};

export const monthSchema: object = {
  type: 'string',
  pattern: '^\\d{4}-(0[1-9]|1[0-2])$',
  description: 'a month as YYYY-MM (UTC)',
};

export const seriesStepSchema: object = {
  type: 'string',
  enum: SERIES_STEPS,
  default: 'minute',
  description: `one of ${SERIES_STEPS.join(', ')}`,
};

export const usageStepSchema: object = {
  type: 'string',
  enum: USAGE_STEPS,
  default: DEFAULT_USAGE_STEP,
  description: `one of ${USAGE_STEPS.join(', ')}`,
};

export const timeSchema: object = {
  type: 'string',
  maxLength: 64,
  description: 'a duration before now such as 7d, a day as YYYY-MM-DD (UTC), or a time such as 2030-01-31T18:00:00Z',
};

/**
 * Schema of the query parameter `watch`. An API server that forwards a request with `watch=true` does not end the stream after a minute.
 */
export const watchSchema: object = { type: 'string', enum: ['true'], description: 'true' };
export const replaceSchema: object = { type: 'string', enum: ['true'], description: 'true' };

export const auditIdSchema: object = {
  type: 'string',
  pattern: '^[0-9]{1,20}(-[0-9]{1,20})?$',
  description: 'the `next` of the response with newer items',
};

/** Returns a schema that refuses unknown properties. If a mistyped filter were ignored, the response would contain the wrong items. */
export function optionalProperties(properties: Readonly<Record<string, object>> = {}): object {
  return { type: 'object', additionalProperties: false, properties };
}

export function requiredProperties(properties: Readonly<Record<string, object>>): object {
  return { ...optionalProperties(properties), required: Object.keys(properties) };
}

const targetSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['type'],
  description: 'an object with type (Tenant, Namespace or Service) and the names that the type needs',
  properties: {
    type: {
      type: 'string',
      enum: ['Tenant', 'Namespace', 'Service'],
      description: 'one of Tenant, Namespace, Service',
    },
    tenant: tenantSchema,
    namespace: namespaceSchema,
    service: serviceSchema,
  },
};

export const suspensionBodySchema: object = {
  type: 'object',
  additionalProperties: false,
  required: ['target', 'message'],
  description: 'a JSON object with target, message and optionally until',
  properties: {
    target: targetSchema,
    message: {
      type: 'string',
      minLength: 1,
      maxLength: 512,
      pattern: '\\S',
      description: 'a text of 1 to 512 characters that the tenant will read',
    },
    until: {
      type: 'string',
      description: 'a time in the future as RFC 3339, such as 2030-01-31T18:00:00Z',
    },
  },
};

/** Returns response schemas for the OpenAPI document. They allow every property, so that fastify serializes the body unchanged. */
export function responseSchemas(description: string): object {
  const error = {
    description: 'what is wrong, where, and how to fix it',
    type: 'object',
    required: ['error'],
    // Error responses to Kubernetes clients also have the fields of a Status.
    additionalProperties: true,
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: { code: { type: 'string' }, message: { type: 'string' } },
      },
    },
  };
  return { 200: { description, type: 'object', additionalProperties: true }, '4xx': error, '5xx': error };
}

type OpenApiOptions = NonNullable<FastifyDynamicSwaggerOptions['openapi']>;

/**
 * Returns the parts of the OpenAPI document that no route defines. With authentication, these parts define `bearerAuth`, to which the
 * routes refer.
 */
export function openApiOptionsFor({ kind }: Pick<Authenticator, 'kind'>): OpenApiOptions {
  const info = { title: 'Weir console', description: 'State and actions of a Weir fleet', version: 'v1' };
  if (kind === 'none') return { info };
  const description = `A Kubernetes token, preferably for the audience ${TOKEN_AUDIENCE}. The right to get tenantusages.weir.dev decides what the console shows; the rights to create and delete suspensions.weir.dev decide what the user may do`;
  return { info, components: { securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer', description } } } };
}
