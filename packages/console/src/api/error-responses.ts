import { errorMessage, type Logger } from '@weir/runtime';
import { StoreError } from '@weir/store';
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import type { FastifySchemaValidationError } from 'fastify/types/schema.js';
import { isAggregatedPath, kubernetesStatusFor } from '../aggregation/aggregated-routes.ts';
import { ApiError, type ApiErrorCode } from './api-error.ts';

/** Every answer that is not 2xx is `{error: {code, message}}`. */
export function handleErrors(app: FastifyInstance, log: Logger): void {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    const known = apiErrorFor(error);
    if (known.code === 'Internal') log.error({ err: error, route: request.routeOptions.url }, 'a request failed');
    return sendError(reply, known);
  });
  app.setNotFoundHandler((request, reply) =>
    sendError(
      reply,
      new ApiError(
        'NotFound',
        `there is no ${request.method} ${pathOf(request.url)}; /openapi.json lists what there is`,
      ),
    ),
  );
}

function apiErrorFor(error: FastifyError): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof InvalidRequestError) return new ApiError('InvalidRequest', error.message);
  if (error instanceof StoreError)
    return new ApiError('StoreAway', `the store does not answer: ${errorMessage(error)}`);
  if (error.statusCode === 415) {
    return new ApiError('UnsupportedMediaType', 'send the body with content-type: application/json');
  }
  if (error.statusCode !== undefined && error.statusCode >= 400 && error.statusCode < 500) {
    return new ApiError('InvalidRequest', errorMessage(error));
  }
  return new ApiError('Internal', 'the console failed; its log says why');
}

function sendError(reply: FastifyReply, error: ApiError): FastifyReply {
  const { code, message, status } = error;
  const body: { error: { code: ApiErrorCode; message: string } } = { error: { code, message } };
  // A client certificate is judged when a connection begins, by the authorities of then: whoever asks again begins another.
  if (status === 401) reply.headers({ 'www-authenticate': 'Bearer realm="weir"', connection: 'close' });
  return reply
    .code(status)
    .send(isAggregatedPath(reply.request.originalUrl) ? { ...kubernetesStatusFor(error), ...body } : body);
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? url;
}

// A 400 says what is wrong, where, and what is allowed. Each property of a schema carries what is allowed as its
// `description`, which the OpenAPI document shows too.

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
