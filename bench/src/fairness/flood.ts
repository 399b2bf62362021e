import { runGenerator } from '../load/run-generator.ts';
import { runWrk } from '../load/wrk.ts';
import type { Ports } from '../subjects/subject.ts';

/** What one tenant does to the others; it may be refused or slowed down, and nobody looks at what comes of it. */
export type Flood = {
  readonly title: string;
  run(ports: Ports, seconds: number): Promise<void>;
};

export const floods: readonly Flood[] = [
  {
    title: '16 streams',
    run: async ({ bulk }, seconds) =>
      void (await runGenerator(new URL('../load/bulk-flood-process.ts', import.meta.url), [bulk, seconds, 16])),
  },
  {
    title: '128 clients that connect',
    run: async ({ answers }, seconds) => {
      await runWrk({ port: answers, seconds, connections: 128, headers: ['Connection: close'] });
    },
  },
];
