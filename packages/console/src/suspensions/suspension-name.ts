import { createHash } from 'node:crypto';
import type { SuspensionTarget } from '@weir/model';

/** The longest name of an object of Kubernetes (RFC 1123 subdomain). */
const MAX_NAME_LENGTH = 253;

/**
 * The same name for the same target, so that suspending twice is one Suspension. Tenants may be named by a label value, which
 * allows what an object's name does not; then a hash keeps two of them apart.
 */
export function suspensionNameFor(target: SuspensionTarget): string {
  const wanted = namePartsFor(target).join('.');
  const allowed = wanted
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .replace(/[.-]+$/, '');
  if (allowed === wanted && allowed.length <= MAX_NAME_LENGTH && !/\.[.-]|-\./.test(allowed)) return allowed;
  const hash = createHash('sha256').update(wanted).digest('hex').slice(0, 10);
  const plain = allowed.replace(/[.-]+/g, '-').slice(0, MAX_NAME_LENGTH - hash.length - 1);
  return `${plain}-${hash}`;
}

function namePartsFor(target: SuspensionTarget): readonly string[] {
  switch (target.kind) {
    case 'tenant':
      return ['tenant', target.tenant];
    case 'namespace':
      return ['namespace', target.namespace];
    case 'service':
      return ['service', target.namespace, target.service];
  }
}
