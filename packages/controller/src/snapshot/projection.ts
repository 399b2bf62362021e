import { type Problem, subjectFor, truncateMessage } from '@weir/model';
import { Fields, truncateAt } from './fields.ts';

/** What an object of the source became. `object` is undefined when it is invalid: then a problem of severity `error` says why. */
export interface ParseResult<T> {
  readonly object: T | undefined;
  readonly problems: readonly Problem[];
}

/** A slice may have thousands of endpoints, and as many mistakes: all problems stand in the table of the fleet. */
const MAX_REPORTED_MISTAKES = 20;
/** The longest name that Kubernetes knows. */
const MAX_NAME_CHARACTERS = 253;

/** Reads an object of a kind; whatever the reader noted as mistakes makes it invalid. */
export function parseObject<T extends object>(kind: string, raw: unknown, read: (fields: Fields) => T): ParseResult<T> {
  const mistakes: string[] = [];
  const object = read(new Fields(raw, mistakes));
  if (mistakes.length === 0) return { object: Object.freeze(object), problems: [] };
  const subject = subjectOfRaw(kind, raw);
  const all = [...new Set(mistakes)];
  const told = all.slice(0, MAX_REPORTED_MISTAKES);
  const more = all.length - told.length;
  if (more > 0) told.push(`the object has ${more} more mistakes; correct those that are listed first`);
  return { object: undefined, problems: told.map((message) => invalidObject(subject, truncateMessage(message))) };
}

/** The text that names an object of which not even the name may be valid. */
export function subjectOfRaw(kind: string, raw: unknown): string {
  const metadata = new Fields(raw, []).object('metadata');
  const namespace = metadata.text('namespace');
  const name = truncateAt(metadata.text('name') ?? '(no name)', MAX_NAME_CHARACTERS);
  return subjectFor(
    kind,
    namespace === null ? { name } : { name, namespace: truncateAt(namespace, MAX_NAME_CHARACTERS) },
  );
}

function invalidObject(subject: string, message: string): Problem {
  return Object.freeze({ code: 'InvalidObject', subject, severity: 'error', heals: false, message });
}
