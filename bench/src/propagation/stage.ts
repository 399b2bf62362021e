import type { EndpointName, NodeAddress } from './places.ts';

/** What changes the world. Of every Service the endpoint is A at first. */
export type Environment = AsyncDisposable & {
  readonly nodes: readonly NodeAddress[];
  readonly services: number;
  /** Makes this backend the one endpoint of the Service; when, by the machine's monotonic clock, the write began and was made. */
  switchEndpoint(service: number, to: EndpointName): Promise<{ readonly beganAt: number; readonly writtenAt: number }>;
};
