import type { BackendName, Node } from './places.ts';

/** What changes the world. Of every Service the endpoint is A at first. */
export type Stage = AsyncDisposable & {
  readonly nodes: readonly Node[];
  readonly services: number;
  /** Makes this backend the one endpoint of the Service; when, by the machine's monotonic clock, the write began and was made. */
  move(service: number, to: BackendName): Promise<{ readonly beganAt: number; readonly writtenAt: number }>;
};
