import { type NamespacedMeta, type ObjectMeta, type Problem, subjectFor, truncateMessage } from '@weir/model';
import { Fields, type TextFormat, truncateAt } from './fields.ts';
import { DNS_LABEL, parseTimestamp, TIMESTAMP } from './formats.ts';

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

export const WEIR_PREFIX = 'weir.dev/';

/** Of others: what Kubernetes itself has for Services, beside their fields. */
const KUBERNETES_ANNOTATIONS: ReadonlySet<string> = new Set([
  'service.beta.kubernetes.io/load-balancer-source-ranges',
  'service.kubernetes.io/topology-mode',
  'service.kubernetes.io/topology-aware-hints',
]);

const UID: TextFormat = { allowed: 'the UID that the API server gives', matches: (text) => text !== '' };

/**
 * The metadata that Weir reads. Labels only where `labels` asks for them, annotations only its own and the few of
 * Kubernetes that it honours: the caches hold every Service of
 * the cluster, and what tools write into the others is many times larger than the rest.
 */
export function readMeta(fields: Fields, options: { readonly name: TextFormat; readonly labels: boolean }): ObjectMeta {
  const metadata = fields.object('metadata');
  const labels = metadata.textMap('labels');
  const createdAt = metadata.text('creationTimestamp', TIMESTAMP);
  return {
    // A directory has none to give where the name is missing, and that is said already.
    uid: metadata.has('name') ? metadata.requiredText('uid', UID) : (metadata.text('uid', UID) ?? ''),
    name: metadata.requiredText('name', options.name),
    labels: Object.freeze(options.labels ? labels : {}),
    annotations: Object.freeze(keptAnnotations(metadata.textMap('annotations'))),
    createdAt: createdAt === null ? null : (parseTimestamp(createdAt) ?? null),
  };
}

export function readNamespacedMeta(fields: Fields, options: { readonly name: TextFormat }): NamespacedMeta {
  const namespace = fields.object('metadata').requiredText('namespace', DNS_LABEL);
  return { ...readMeta(fields, { ...options, labels: false }), namespace };
}

function keptAnnotations(all: Readonly<Record<string, string>>): Record<string, string> {
  const isRead = (key: string): boolean => key.startsWith(WEIR_PREFIX) || KUBERNETES_ANNOTATIONS.has(key);
  return Object.fromEntries(Object.entries(all).filter(([key]) => isRead(key)));
}
