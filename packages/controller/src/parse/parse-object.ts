import { type NamespacedMeta, type ObjectMeta, type Problem, subjectFor, truncateMessage } from '@weir/model';
import { DNS_LABEL, Fields, parseTimestamp, type TextFormat, TIMESTAMP, truncateAt } from './fields.ts';

/** A parsed object with its problems. If the object cannot be used, `object` is undefined and a problem says why. */
export interface ParseResult<T> {
  readonly object: T | undefined;
  readonly problems: readonly Problem[];
}

/**
 * The maximum number of mistakes that are reported for one object. A slice may have thousands of wrong endpoints, and the routing
 * table carries every problem to all proxies.
 */
const MAX_REPORTED_MISTAKES = 20;
/** The length of the longest name in Kubernetes (an RFC 1123 subdomain). */
const MAX_NAME_CHARACTERS = 253;

/** Reads an object with `read`. The object is invalid if `read` noted mistakes. */
export function parseObject<T extends object>(kind: string, raw: unknown, read: (fields: Fields) => T): ParseResult<T> {
  const mistakes: string[] = [];
  const object = read(new Fields(raw, mistakes));
  if (mistakes.length === 0) return { object: Object.freeze(object), problems: [] };
  return { object: undefined, problems: mistakeProblems(kind, raw, { mistakes }) };
}

/** Returns one error per mistake, without repetitions. */
export function mistakeProblems(
  kind: string,
  raw: unknown,
  { mistakes, code = 'InvalidObject' }: { readonly mistakes: readonly string[]; readonly code?: Problem['code'] },
): readonly Problem[] {
  const subject = subjectOfRaw(kind, raw);
  const all = [...new Set(mistakes)];
  const reported = all.slice(0, MAX_REPORTED_MISTAKES);
  const omitted = all.length - reported.length;
  if (omitted > 0) reported.push(`the object has ${omitted} more mistakes; correct the listed mistakes first`);
  return reported.map((message) => invalidObject(code, subject, truncateMessage(message)));
}

/** Returns the subject for a problem of the object, even if the object's name is missing or invalid. */
export function subjectOfRaw(kind: string, raw: unknown): string {
  const metadata = new Fields(raw, []).object('metadata');
  const namespace = metadata.text('namespace');
  const name = truncateAt(metadata.text('name') ?? '(no name)', MAX_NAME_CHARACTERS);
  return subjectFor(
    kind,
    namespace === null ? { name } : { name, namespace: truncateAt(namespace, MAX_NAME_CHARACTERS) },
  );
}

function invalidObject(code: Problem['code'], subject: string, message: string): Problem {
  return Object.freeze({ code, subject, severity: 'error', heals: false, message });
}

/** The prefix of Weir's annotations and conditions. */
export const WEIR_PREFIX = 'weir.dev/';

/** The annotations of Kubernetes that Weir honours on Services. */
const KUBERNETES_ANNOTATIONS: ReadonlySet<string> = new Set([
  'service.beta.kubernetes.io/load-balancer-source-ranges',
  'service.kubernetes.io/topology-mode',
  'service.kubernetes.io/topology-aware-hints',
]);

const UID: TextFormat = { allowed: 'the UID that the API server gives', matches: (text) => text !== '' };

/**
 * Reads only the metadata that Weir needs: labels if `labels` is true, Weir's annotations, and the few annotations of Kubernetes that
 * Weir honours. The caches hold every Service of the cluster, and the annotations of other tools are many times larger than the rest
 * of a Service.
 */
export function readMeta(fields: Fields, options: { readonly name: TextFormat; readonly labels: boolean }): ObjectMeta {
  const metadata = fields.object('metadata');
  const labels = metadata.textMap('labels');
  const createdAt = metadata.text('creationTimestamp', TIMESTAMP);
  return {
    // A missing UID is a mistake only if the object has a name. UIDs of objects in files are derived from the name, and a missing
    // name is reported as a separate mistake.
    uid: metadata.has('name') ? metadata.requiredText('uid', UID) : (metadata.text('uid', UID) ?? ''),
    name: metadata.requiredText('name', options.name),
    labels: Object.freeze(options.labels ? labels : {}),
    annotations: Object.freeze(readableAnnotations(metadata.textMap('annotations'))),
    createdAt: createdAt === null ? null : (parseTimestamp(createdAt) ?? null),
  };
}

export function readNamespacedMeta(fields: Fields, options: { readonly name: TextFormat }): NamespacedMeta {
  const namespace = fields.object('metadata').requiredText('namespace', DNS_LABEL);
  return { ...readMeta(fields, { ...options, labels: false }), namespace };
}

function readableAnnotations(all: Readonly<Record<string, string>>): Record<string, string> {
  const isRead = (key: string): boolean => key.startsWith(WEIR_PREFIX) || KUBERNETES_ANNOTATIONS.has(key);
  return Object.fromEntries(Object.entries(all).filter(([key]) => isRead(key)));
}
