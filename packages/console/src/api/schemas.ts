import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import type { Authenticator } from '../access/authenticator.ts';
import { TOKEN_AUDIENCE } from '../access/token-reviews.ts';
import { SERIES_STEPS } from '../usage/tenant-series.ts';

// Pieces of request schemas. `description` is what a 400 offers as allowed, and what the OpenAPI document says.

/** Names of namespaces and Services: RFC 1123 labels. */
const DNS_LABEL_PATTERN = '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$';
/** What a label value may be, since a tenant may be named by one. */
const LABEL_VALUE_PATTERN = '^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$';
/** Names of objects of the cluster: RFC 1123 subdomains. */
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

/** An API server in front ends after a minute what does not say that it lasts. */
export const watchSchema: object = { type: 'string', enum: ['true'], description: 'true' };
export const replaceSchema: object = { type: 'string', enum: ['true'], description: 'true' };

/** Exactly these parameters; an unknown one is a mistake that would otherwise show more, or less, than was asked for. */
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
  description: 'an object with type (Tenant, Namespace or Service) and the names that it needs',
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
  description: 'a JSON object with target, message and perhaps until',
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

/** An answer of any shape: it is documented by its description, and serialized as it is. */
export function responseSchemas(description: string): object {
  const error = {
    description: 'what is wrong, where, and what to do',
    type: 'object',
    required: ['error'],
    // To clients of Kubernetes it is a Status, too.
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

/** The head of the document; routes that want a token name `bearerAuth`. */
export function openApiOptionsFor({ kind }: Pick<Authenticator, 'kind'>): OpenApiOptions {
  const info = { title: 'Weir console', description: 'What a fleet of Weir knows and does', version: 'v1' };
  if (kind === 'none') return { info };
  const description = `A token of the cluster, best one for the audience ${TOKEN_AUDIENCE}; what it shows follows from get tenantusages.weir.dev, what it does from create and delete of suspensions.weir.dev`;
  return { info, components: { securitySchemes: { bearerAuth: { type: 'http', scheme: 'bearer', description } } } };
}
