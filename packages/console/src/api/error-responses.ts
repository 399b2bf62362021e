import { errorMessage, type Logger } from '@weir/runtime';
import { StoreError } from '@weir/store';
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { FastifySchemaValidationError } from 'fastify/types/schema.js';
import { isAggregatedPath, kubernetesStatusFor } from '../aggregation/aggregated-routes.ts';
import { ApiError, type ApiErrorCode } from './api-error.ts';

/** The maximum size of the body of a request. */
export const MAX_BODY_BYTES: number = 64 * 1_024;

/** Sets error handlers that give every error response the body `{error: {code, message}}`. */
export function handleErrors(app: FastifyInstance, log: Logger): void {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const apiError = apiErrorFor(error);
    if (apiError.code === 'Internal') log.error({ err: error, route: request.routeOptions.url }, 'request failed');
    return sendError(reply, apiError);
  });
  app.setNotFoundHandler((request, reply) =>
    sendError(
      reply,
      new ApiError(
        'NotFound',
        `there is no route ${request.method} ${pathOf(request.url)}; /openapi.json lists all routes`,
      ),
    ),
  );
}

function apiErrorFor(error: FastifyError): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof InvalidRequestError) return new ApiError('InvalidRequest', error.message);
  if (error instanceof StoreError) return new ApiError('StoreAway', `the store is unreachable: ${errorMessage(error)}`);
  if (error.statusCode === 413) {
    return new ApiError('InvalidRequest', `the body is larger than ${MAX_BODY_BYTES / 1_024} KiB; send a smaller one`);
  }
  if (error.statusCode === 415) {
    return new ApiError('UnsupportedMediaType', 'send the body with content-type: application/json');
  }
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new ApiError('InvalidRequest', errorMessage(error));
  }
  return new ApiError(
    'Internal',
    'the console failed to handle the request; the log of the console contains the reason',
  );
}

/**
 * Answers a request that Fastify refuses before it looks for a route, such as one whose path is not percent-encoded UTF-8. For the option
 * `frameworkErrors` of Fastify.
 */
export function answerFrameworkError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const isBadPath = error.code === 'FST_ERR_BAD_URL';
  const path = JSON.stringify(pathOf(request.raw.url ?? ''));
  sendError(
    reply,
    isBadPath
      ? new ApiError('InvalidRequest', `path ${path} is not percent-encoded UTF-8; write % as %25`)
      : apiErrorFor(error),
  );
}

function sendError(reply: FastifyReply, error: ApiError): FastifyReply {
  const { code, message, status } = error;
  const body: { error: { code: ApiErrorCode; message: string } } = { error: { code, message } };
  // Closes the connection, because client certificates are verified only in the handshake. After a rotation, the API server must reconnect
  // to be verified with the current authorities.
  if (status === 401) reply.headers({ 'www-authenticate': 'Bearer realm="weir"', connection: 'close' });
  return reply
    .code(status)
    .send(isAggregatedPath(reply.request.originalUrl) ? { ...kubernetesStatusFor(error), ...body } : body);
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? url;
}

/** A validation error with the fields that ajv adds if its option `verbose` is true. */
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

/**
 * Returns the error for a `part` of a request (querystring, params, body, headers) that does not match the schema. The message contains the
 * allowed values, as the schema's `description` states them. The OpenAPI document contains the same text.
 */
export function validationError(errors: readonly FastifySchemaValidationError[], part: string): InvalidRequestError {
  const sentences = (errors as readonly VerboseError[]).map((error) => validationMessageFor(error, part));
  return new InvalidRequestError([...new Set(sentences)].join('; '));
}

function validationMessageFor(error: VerboseError, part: string): string {
  const partName = PART_NAMES[part] ?? part;
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  const prefix = path === '' ? '' : `${path}.`;
  if (error.keyword === 'additionalProperties') {
    const name = `${prefix}${String(error.params.additionalProperty)}`;
    const allowed = Object.keys(error.parentSchema?.properties ?? {});
    return `${partName} "${name}" is unknown; ${allowed.length === 0 ? 'none is allowed here' : `allowed: ${allowed.join(', ')}`}`;
  }
  if (error.keyword === 'required') {
    const name = String(error.params.missingProperty);
    const property = error.parentSchema?.properties?.[name] as { readonly description?: string } | undefined;
    return `${partName} "${prefix}${name}" is missing${property?.description === undefined ? '' : `; use ${property.description}`}`;
  }
  const allowed = error.parentSchema?.description ?? error.message ?? 'something else';
  return `${partName}${path === '' ? '' : ` "${path}"`} is ${quoteValue(error.data)}; use ${allowed}`;
}

function quoteValue(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > 100 ? `${text.slice(0, 99)}…` : text;
}
