import type { Endpoint } from '../table/entry.ts';

/** `address|port`: what tells two endpoints of one port apart. */
export function endpointKey(endpoint: Endpoint): string {
  return `${endpoint.address}|${endpoint.port}`;
}
