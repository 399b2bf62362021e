// The closed lists of PRODUCT, "What a Service says".

export type RefusalReason =
  | 'QuotaExceeded'
  | 'PortConflict'
  | 'PortReserved'
  | 'InvalidAnnotation'
  | 'EndpointForbidden'
  | 'UnsupportedProtocol'
  | 'TenantConflict';

export type AcceptedReason = 'Accepted' | RefusalReason;

export type ProgrammedReason = 'Programmed' | 'WaitingForProxy' | 'NoNodes' | 'BindFailed' | 'FleetUnreachable';

/** From the gravest down. */
export const DEGRADED_REASONS = [
  'NoReadyEndpoints',
  'OverLimit',
  'NodePortBypass',
  'SourceAddressNotPreserved',
  'FewerNodes',
] as const;
export type DegradedReason = (typeof DEGRADED_REASONS)[number];

export type SuspendedReason = 'SuspendedByOperator' | 'SuspendedByRule';
