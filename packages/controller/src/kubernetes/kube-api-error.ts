import { WeirError } from '@weir/runtime';

export type KubeApiErrorCode =
  /** The API server is unreachable: no connection, a time-out, or an overloaded server. A later retry may succeed. */
  | 'AWAY'
  /** 401: the credentials are not accepted. */
  | 'UNAUTHORIZED'
  /** 403: the user lacks the permission. */
  | 'FORBIDDEN'
  /** 404: the object or the kind does not exist. */
  | 'NOT_FOUND'
  /** 409: the object was changed or replaced since it was read. */
  | 'CONFLICT'
  /** 410: the resource version or the continue token is too old. */
  | 'GONE'
  /** Any other refusal: repeating the same request does not help. */
  | 'REFUSED';

interface KubeApiErrorOptions {
  readonly cause?: unknown;
  readonly missingName?: string;
  readonly retryAfterMs?: number;
  readonly status?: number;
}

/** A request to the API server that failed or was refused. The message contains the server's message. */
export class KubeApiError extends WeirError<KubeApiErrorCode> {
  /** For 404: the name of the missing object. It is undefined if the API server does not know the kind. */
  readonly missingName: string | undefined;
  /** Milliseconds from `Retry-After`, which the server sends with 429 and 503. */
  readonly retryAfterMs: number | undefined;
  /** The HTTP status; undefined if there was no response. */
  readonly status: number | undefined;

  constructor(code: KubeApiErrorCode, message: string, options: KubeApiErrorOptions = {}) {
    super(code, message, options);
    this.missingName = options.missingName;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
  }
}

/** Returns the error for a response whose status is not 2xx. `request` is the method and the path. */
export function kubeApiErrorFor(request: string, head: ResponseHead, body: string): KubeApiError {
  const { statusCode = 0 } = head;
  const { message = `HTTP ${statusCode}`, name } = readStatus(body);
  const retryAfter = Number(head.headers['retry-after']);
  return new KubeApiError(errorCodeFor(statusCode), `${request}: ${message}`, {
    status: statusCode,
    ...(name !== undefined && { missingName: name }),
    // HTTP also allows a date in `Retry-After`, but the API server sends seconds.
    ...(retryAfter > 0 && { retryAfterMs: retryAfter * 1000 }),
  });
}

/** The part of `http.IncomingMessage` that this file uses. */
interface ResponseHead {
  readonly statusCode?: number | undefined;
  readonly headers: { readonly 'retry-after'?: string | undefined };
}

/**
 * Whether a failure concerns only one object. The API server answers 500, for example, if the object is too large for etcd, or if a
 * webhook for the object's namespace is down.
 */
export function isSingleObjectFailure(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 500;
}

export function errorCodeFor(statusCode: number): KubeApiErrorCode {
  switch (statusCode) {
    case 401:
      return 'UNAUTHORIZED';
    case 403:
      return 'FORBIDDEN';
    case 404:
      return 'NOT_FOUND';
    case 409:
      return 'CONFLICT';
    case 410:
      return 'GONE';
    default:
      return statusCode === 429 || statusCode >= 500 ? 'AWAY' : 'REFUSED';
  }
}

/** Reads a metav1.Status. Returns an empty object for other bodies, because a proxy in front of an API server may send them. */
function readStatus(body: string): { readonly message?: string; readonly name?: string } {
  try {
    const { message, details } = JSON.parse(body) as { message?: unknown; details?: { name?: unknown } };
    return {
      ...(typeof message === 'string' && { message }),
      ...(typeof details?.name === 'string' && { name: details.name }),
    };
  } catch {
    return {};
  }
}
