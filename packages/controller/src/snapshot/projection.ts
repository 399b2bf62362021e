import { type Problem, subjectFor } from '@weir/model';
import { Fields } from './fields.ts';

/** What an object of the source became. `object` is undefined when it is invalid: then a problem of severity `error` says why. */
export interface Projection<T> {
  readonly object: T | undefined;
  readonly problems: readonly Problem[];
}

/** Reads an object of a kind; whatever the reader noted as mistakes makes it invalid. */
export function project<T extends object>(kind: string, raw: unknown, read: (fields: Fields) => T): Projection<T> {
  const mistakes: string[] = [];
  const object = read(new Fields(raw, mistakes));
  if (mistakes.length === 0) return { object: Object.freeze(object), problems: [] };
  const subject = subjectOf(kind, raw);
  return { object: undefined, problems: [...new Set(mistakes)].map((message) => invalid(subject, message)) };
}

/** The text that names an object of which not even the name may be valid. */
export function subjectOf(kind: string, raw: unknown): string {
  const metadata = new Fields(raw, []).object('metadata');
  const namespace = metadata.text('namespace');
  return subjectFor(kind, { name: metadata.text('name') ?? '(no name)', ...(namespace !== null && { namespace }) });
}

function invalid(subject: string, message: string): Problem {
  return Object.freeze({ code: 'InvalidObject', subject, severity: 'error', heals: false, message });
}
