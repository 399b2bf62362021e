const MAX_CHANGED_SERVICES = 10;

/** Those whose endpoint is moved, one after the other: ten, spread over all. */
export function changedServices(services: number): readonly number[] {
  const count = Math.min(MAX_CHANGED_SERVICES, services);
  return Array.from({ length: count }, (_, nth) => Math.floor((nth * services) / count));
}
