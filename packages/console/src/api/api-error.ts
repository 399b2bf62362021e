import { WeirError } from '@weir/runtime';

export type ApiErrorCode =
  | 'InvalidRequest'
  | 'SignInRequired'
  | 'NotAllowed'
  | 'NoAccessLog'
  | 'NoTopClients'
  | 'NotFound'
  | 'UnknownTarget'
  | 'ForeignHost'
  | 'ForeignOrigin'
  | 'AlreadySuspended'
  | 'OriginIsFile'
  | 'OriginIsKubernetes'
  | 'OriginIsLocal'
  | 'TooManyWatchers'
  | 'UnsupportedMediaType'
  | 'StoreAway'
  | 'KubernetesAway'
  | 'KubernetesRefused'
  | 'Internal';

const STATUS: Readonly<Record<ApiErrorCode, number>> = {
  InvalidRequest: 400,
  SignInRequired: 401,
  NotAllowed: 403,
  ForeignHost: 403,
  ForeignOrigin: 403,
  KubernetesRefused: 403,
  NoAccessLog: 404,
  NoTopClients: 404,
  NotFound: 404,
  UnknownTarget: 404,
  AlreadySuspended: 409,
  OriginIsFile: 409,
  OriginIsKubernetes: 409,
  OriginIsLocal: 409,
  UnsupportedMediaType: 415,
  Internal: 500,
  StoreAway: 503,
  KubernetesAway: 503,
  TooManyWatchers: 503,
};

/** An error that the console sends as an error response. */
export class ApiError extends WeirError<ApiErrorCode> {
  get status(): number {
    return STATUS[this.code];
  }
}
