import { WeirError } from '@weir/runtime';

export type ApiErrorCode =
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

/** The API server failing or refusing; its own words are in the message. */
export class ApiError extends WeirError<ApiErrorCode> {
  /** Of a 404: the name of the object that does not exist; undefined when the kind itself is unknown. */
  readonly missing: string | undefined;

  constructor(
    code: ApiErrorCode,
    message: string,
    options: { readonly cause?: unknown; readonly missing?: string } = {},
  ) {
    super(code, message, options);
    this.missing = options.missing;
  }
}

/** The error of an answer that is none of success. */
export function apiErrorFor(what: string, statusCode: number, body: string): ApiError {
  const status = readStatus(body);
  const message = `${what}: ${status.message ?? `HTTP ${statusCode}`}`;
  return new ApiError(codeFor(statusCode), message, status.name === undefined ? {} : { missing: status.name });
}

export function codeFor(statusCode: number): ApiErrorCode {
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
