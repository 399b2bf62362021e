import { runGenerator } from '../load/run-generator.ts';
import type { Ports } from '../subjects/subject.ts';
import { tightLimits } from '../subjects/weir-manifests.ts';

/** What one tenant does to the others; it may be refused or slowed down. Says in words how much of it came through. */
export type Flood = {
  readonly title: string;
  run(ports: Ports, seconds: number): Promise<string>;
};

type Streams = { readonly bytes: number };
type Connections = { readonly begun: number; readonly answered: number };

const streams = 16;
const connectionsPerSecond = 10 * tightLimits.newConnectionsPerSecond;

/** Ten times what the limited tenant may, or more. */
export const floods: readonly Flood[] = [
  {
    title: `${streams} streams`,
    run: async ({ bulk }, seconds) => {
      const program = new URL('../load/bulk-flood-process.ts', import.meta.url);
      const { bytes } = await runGenerator<Streams>(program, [bulk, seconds, streams]);
      return `${Math.round((bytes * 8) / 1e6 / seconds)} Mbit/s`;
    },
  },
  {
    title: `${connectionsPerSecond} connections a second`,
    run: async ({ answers }, seconds) => {
      const program = new URL('../load/connect-flood-process.ts', import.meta.url);
      const { begun, answered } = await runGenerator<Connections>(program, [answers, seconds, connectionsPerSecond]);
      return `${answered} of ${begun} answered`;
    },
  },
];
