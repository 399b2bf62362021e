import { type Problem, subjectFor, truncate } from '@weir/model';
import { Fields, shortened } from './fields.ts';

/** What an object of the source became. `object` is undefined when it is invalid: then a problem of severity `error` says why. */
export interface Projection<T> {
  readonly object: T | undefined;
  readonly problems: readonly Problem[];
}

/** A slice may have thousands of endpoints, and as many mistakes: all problems stand in the table of the fleet. */
const MOST_MISTAKES = 20;
/** The longest name that Kubernetes knows. */
const LONGEST_NAME = 253;

/** Reads an object of a kind; whatever the reader noted as mistakes makes it invalid. */
export function project<T extends object>(kind: string, raw: unknown, read: (fields: Fields) => T): Projection<T> {
  const mistakes: string[] = [];
  const object = read(new Fields(raw, mistakes));
  if (mistakes.length === 0) return { object: Object.freeze(object), problems: [] };
  const subject = subjectOf(kind, raw);
  const all = [...new Set(mistakes)];
  const told = all.slice(0, MOST_MISTAKES);
  const more = all.length - told.length;
  if (more > 0) told.push(`the object has ${more} more mistakes; correct those that are listed first`);
  return { object: undefined, problems: told.map((message) => invalid(subject, truncate(message))) };
}

/** The text that names an object of which not even the name may be valid. */
export function subjectOf(kind: string, raw: unknown): string {
  const metadata = new Fields(raw, []).object('metadata');
  const namespace = metadata.text('namespace');
  const name = shortened(metadata.text('name') ?? '(no name)', LONGEST_NAME);
  return subjectFor(kind, namespace === null ? { name } : { name, namespace: shortened(namespace, LONGEST_NAME) });
}

function invalid(subject: string, message: string): Problem {
  return Object.freeze({ code: 'InvalidObject', subject, severity: 'error', heals: false, message });
}
