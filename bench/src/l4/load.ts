import type { Moved } from '../measure/moved.ts';
import type { BackendName } from '../subjects/subject.ts';

/** One kind of load that is put on a port, and the figure that it gives. */
export type Load = {
  readonly title: string;
  readonly unit: string;
  readonly backend: BackendName;
  run(port: number, seconds: number): Promise<Loaded>;
  figure(cpuMs: number, loaded: Loaded): number;
};

export type Loaded = {
  /** Requests, connections, bytes or round trips. */
  readonly count: number;
  readonly ms: number;
  readonly moved: Moved;
  /** What makes it invalid, in words. */
  readonly complaints: readonly string[];
};

export function microsecondsEach(cpuMs: number, { count }: Loaded): number {
  return (cpuMs * 1000) / count;
}
