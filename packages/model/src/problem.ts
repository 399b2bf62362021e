import type { DegradedReason, RefusalReason } from './reason.ts';

/** A user's mistake, as data: shown in status, API and CLI, never thrown. */
export interface Problem {
  readonly code: ProblemCode;
  /** `Service shop/web`, `TenantPolicy shop`, `apps/web.yaml:12`. */
  readonly subject: string;
  readonly severity: 'error' | 'warning';
  /** True when it may go away without anyone editing the subject (a dangling reference, a taken port). */
  readonly heals: boolean;
  /** What is wrong, where, and what to do. */
  readonly message: string;
}

/** Beside the reasons of Services: what is wrong with manifests, with the cluster, or with the fleet. */
export const GENERAL_PROBLEM_CODES = [
  'InvalidDocument',
  'InvalidObject',
  'DuplicateObject',
  'UnknownKind',
  'UnreadableFile',
  'MissingCustomResource',
  'Forbidden',
  'EndpointsNotRefined',
  'NoNodes',
  'NoServices',
  'UnknownTarget',
] as const;

export type ProblemCode = RefusalReason | DegradedReason | (typeof GENERAL_PROBLEM_CODES)[number];

/** The text that names an object in problems. */
export function subjectFor(kind: string, object: { readonly namespace?: string; readonly name: string }): string {
  return object.namespace === undefined ? `${kind} ${object.name}` : `${kind} ${object.namespace}/${object.name}`;
}
