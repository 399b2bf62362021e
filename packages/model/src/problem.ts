import type { DegradedReason, RefusalReason } from './reason.ts';

/** A user's mistake as data: it is shown in the status, the API and the CLI, and never thrown. */
export interface Problem {
  readonly code: ProblemCode;
  /** The object or file with the problem: `Service shop/web`, `TenantPolicy shop`, `apps/web.yaml:12`. */
  readonly subject: string;
  readonly severity: 'error' | 'warning';
  /** Whether the problem may go away without an edit of the subject (a missing Secret, a port in use). */
  readonly heals: boolean;
  /** What is wrong, where, and what to do. */
  readonly message: string;
}

/** Codes of problems that are not reasons of Services: problems of manifests, of the cluster, or of the fleet. */
export const GENERAL_PROBLEM_CODES = [
  'InvalidDocument',
  'InvalidObject',
  'InvalidRule',
  'DuplicateObject',
  'UnknownKind',
  'UnreadableFile',
  'MissingCustomResource',
  'Forbidden',
  'EndpointsNotRefined',
  'NoNodes',
  'NoServices',
  'UnhealthyEndpoints',
  'UnknownTarget',
] as const;

export type ProblemCode = RefusalReason | DegradedReason | (typeof GENERAL_PROBLEM_CODES)[number];

/** Returns the subject of a problem: `Kind namespace/name`, or `Kind name`. */
export function subjectFor(kind: string, object: { readonly namespace?: string; readonly name: string }): string {
  return object.namespace === undefined ? `${kind} ${object.name}` : `${kind} ${object.namespace}/${object.name}`;
}
