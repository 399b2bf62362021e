// One row per namespace, tenant and period sums up the usage of the Services that have no row of their own: Services that have been gone
// for `GONE_SERVICE_TTL_MS`, and Services that do not fit into a TenantUsage. The row looks like the row of a Service.

/** The name in the row. No Service can have this name. */
export const OTHER_SERVICES_NAME = '(other)';

const UID_PREFIX = 'other.';

/** Returns the uid in the row of a namespace. No Service has such a uid. */
export function otherServicesUid(namespace: string): string {
  return `${UID_PREFIX}${namespace}`;
}

/** Returns the namespace of a uid that `otherServicesUid` returned, or undefined for the uid of a Service. */
export function namespaceOfOtherServices(uid: string): string | undefined {
  return uid.startsWith(UID_PREFIX) ? uid.slice(UID_PREFIX.length) : undefined;
}
