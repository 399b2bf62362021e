// Finds out who wrote a field of an object. The API server records the owners of all fields in `metadata.managedFields`.
import { isObject } from '../parse/fields.ts';
import type { Json } from './kube-api.ts';

/** An entry of `metadata.managedFields`. */
export interface ManagedFields {
  readonly manager?: string;
  /** `Apply` (server-side apply) or `Update` (any other write). */
  readonly operation?: string;
  readonly subresource?: string;
  /** When the manager last changed its fields (RFC 3339). */
  readonly time?: string;
  readonly fieldsV1?: Json;
}

/** Returns the entries of a raw object; none if the object is not as the API server writes it. */
export function managedFieldsOf(raw: unknown): readonly ManagedFields[] {
  const metadata = isObject(raw) && isObject(raw.metadata) ? raw.metadata : {};
  return Array.isArray(metadata.managedFields) ? metadata.managedFields.filter(isObject) : [];
}

/** The path of the addresses in the status of a Service. */
export const INGRESS_FIELD: readonly string[] = ['f:status', 'f:loadBalancer', 'f:ingress'];

/** Whether the entry is about the status, and contains the field at `path` in the notation of `fieldsV1`. */
export function ownsStatusField({ subresource, fieldsV1 }: ManagedFields, path: readonly string[]): boolean {
  let value: unknown = fieldsV1;
  for (const name of path) value = isObject(value) ? value[name] : undefined;
  return subresource === 'status' && value !== undefined;
}

/** Whether `manager` has written the field of the status by server-side apply, and no other manager has changed the field since. */
export function isAppliedBy(
  manager: string,
  managedFields: readonly ManagedFields[],
  path: readonly string[],
): boolean {
  return managedFields.some(
    (each) => each.manager === manager && each.operation === 'Apply' && ownsStatusField(each, path),
  );
}

/**
 * Returns the manager that changed the spec of a raw object last, such as `kubectl-create`; undefined if no entry has a manager, for
 * example because the object is from a file.
 */
export function specManagerOf(raw: unknown): string | undefined {
  const ofSpec = managedFieldsOf(raw).filter(
    ({ manager, fieldsV1 }) => typeof manager === 'string' && isObject(fieldsV1) && isObject(fieldsV1['f:spec']),
  );
  return ofSpec.sort((a, b) => String(a.time ?? '').localeCompare(String(b.time ?? ''))).at(-1)?.manager;
}
