import type { NamespacedMeta, ObjectMeta } from '@weir/model';
import type { Fields, TextFormat } from './fields.ts';
import { DNS_LABEL, parseTimestamp, TIMESTAMP } from './formats.ts';

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
