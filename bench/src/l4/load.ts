import type { TrafficBounds } from '../measure/moved.ts';
import type { BackendName } from '../subjects/subject.ts';

/** One kind of load that is put on a port, and the figure that it gives. */
export type Load = {
  readonly title: string;
  readonly unit: string;
  readonly backend: BackendName;
  run(port: number, seconds: number): Promise<LoadResult>;
  figure(cpuMs: number, loaded: LoadResult): number;
};

export type LoadResult = {
  /** Requests, connections, bytes or round trips. */
  readonly count: number;
  readonly ms: number;
  readonly traffic: TrafficBounds;
  /** What makes it invalid, in words. */
  readonly errors: readonly string[];
};

export function cpuMicrosecondsPerUnit(cpuMs: number, { count }: LoadResult): number {
  return (cpuMs * 1000) / count;
}
