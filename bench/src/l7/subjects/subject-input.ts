import { type Certificate, freePort } from '@weir/testkit';
import type { L7Ports } from '../listeners.ts';

/** What every subject of `l7` relays to and presents. */
export type L7SubjectInput = {
  /** The port of the backend at 127.0.0.1, which speaks HTTP/1.1. */
  readonly backendPort: number;
  /** The port of the backend of the listener `grpc` at 127.0.0.1, which speaks HTTP/2. */
  readonly grpcBackendPort: number;
  /** The certificate of the listener `https`. */
  readonly certificate: Pick<Certificate, 'chain' | 'key'>;
};

export async function freeL7Ports(): Promise<L7Ports> {
  const [http, routes, https] = [await freePort(), await freePort(), await freePort()];
  return { http, routes, https, http2: await freePort(), grpc: await freePort() };
}
