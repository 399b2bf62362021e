import { WeirError } from '@weir/runtime';

export type KubeApiErrorCode =
  /** No connection, no answer in time, or overloaded: it heals by itself. */
  | 'AWAY'
  /** 401: the credentials are not accepted. */
  | 'UNAUTHORIZED'
  /** 403. */
  | 'FORBIDDEN'
  /** 404: the object, or the whole kind. */
  | 'NOT_FOUND'
  /** 409: somebody changed the object meanwhile, or it is another one of the same name. */
  | 'CONFLICT'
  /** 410: too old a place to go on from. */
  | 'GONE'
  /** Any other refusal: asking again the same way is of no use. */
  | 'REFUSED';

interface KubeApiErrorOptions {
  readonly cause?: unknown;
  readonly missingName?: string;
  readonly retryAfterMs?: number;
  readonly status?: number;
}

/** The API server failing or refusing; its own words are in the message. */
export class KubeApiError extends WeirError<KubeApiErrorCode> {
  /** Of a 404: the name of the object that does not exist; undefined when the kind itself is unknown. */
  readonly missingName: string | undefined;
  /** Of a server that says when to come again (429, 503): in how many milliseconds. */
  readonly retryAfterMs: number | undefined;
  /** Of the answer; undefined: there was none. */
  readonly status: number | undefined;

  constructor(code: KubeApiErrorCode, message: string, options: KubeApiErrorOptions = {}) {
    super(code, message, options);
    this.missingName = options.missingName;
    this.retryAfterMs = options.retryAfterMs;
    this.status = options.status;
  }
}

/** The error of an answer that is none of success. */
export function kubeApiErrorFor(what: string, head: ResponseHead, body: string): KubeApiError {
  const { statusCode = 0 } = head;
  const { message = `HTTP ${statusCode}`, name } = readStatus(body);
  const retryAfter = Number(head.headers['retry-after']);
  return new KubeApiError(errorCodeFor(statusCode), `${what}: ${message}`, {
    status: statusCode,
    ...(name !== undefined && { missingName: name }),
    // A date is allowed, too; the API server sends seconds.
    ...(retryAfter > 0 && { retryAfterMs: retryAfter * 1000 }),
  });
}

/** As of `http.IncomingMessage`. */
interface ResponseHead {
  readonly statusCode?: number | undefined;
  readonly headers: { readonly 'retry-after'?: string | undefined };
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

/** metav1.Status, as far as it is one. */
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
