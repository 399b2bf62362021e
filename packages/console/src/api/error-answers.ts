import { errorMessage, type Logger } from '@weir/runtime';
import { StoreError } from '@weir/store';
import type { FastifyError, FastifyInstance, FastifyReply } from 'fastify';
import { isAggregatedPath, kubernetesStatusFor } from '../aggregation/aggregated-routes.ts';
import { ApiError, type ApiErrorCode } from './api-error.ts';
import { InvalidRequestError } from './validation.ts';

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
