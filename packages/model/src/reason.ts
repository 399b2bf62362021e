// The reasons of all conditions. docs/reasons.md documents each reason; a test compares the lists.

export const REFUSAL_REASONS = [
  'QuotaExceeded',
  'PortConflict',
  'PortReserved',
  'PortNotAllowed',
  'PoolNotAllowed',
  'HostConflict',
  'HostNotAllowed',
  'InvalidAnnotation',
  'SecretNotFound',
  'SecretForbidden',
  'InvalidCertificate',
  'EndpointForbidden',
  'UnsupportedProtocol',
  'TenantConflict',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

export type AcceptedReason = 'Accepted' | RefusalReason;

export const PROGRAMMED_REASONS = [
  'Programmed',
  'NotAccepted',
  'WaitingForProxy',
  'NoNodes',
  'BindFailed',
  'FleetUnreachable',
  'NoProxy',
] as const;
export type ProgrammedReason = (typeof PROGRAMMED_REASONS)[number];

/** The reasons of the Degraded condition, the most severe reason first. */
export const DEGRADED_REASONS = [
  'NoProxy',
  'ForeignController',
  'NoReadyEndpoints',
  'CertificateExpiring',
  'OverLimit',
  'NodePortBypass',
  'SourceAddressNotPreserved',
  'ErrorPagesNotUsed',
  'FewerNodes',
] as const;
export type DegradedReason = (typeof DEGRADED_REASONS)[number];

export const SUSPENDED_REASONS = ['SuspendedByOperator', 'SuspendedByRule'] as const;
export type SuspendedReason = (typeof SUSPENDED_REASONS)[number];
