import { runGenerator } from '../load/run-generator.ts';
import type { BackendPorts } from '../subjects/subject.ts';
import { TIGHT_LIMITS } from '../subjects/weir-manifests.ts';

/** What one tenant does to the others; it may be refused or slowed down. Says in words how much of it came through. */
export type Flood = {
  readonly title: string;
  run(ports: BackendPorts, seconds: number): Promise<string>;
};

type StreamFloodReport = { readonly bytes: number };
type ConnectionFloodReport = { readonly begun: number; readonly answered: number };

const FLOOD_STREAMS = 16;
const FLOOD_CONNECTIONS_PER_SECOND = 10 * TIGHT_LIMITS.newConnectionsPerSecond;

/** Ten times what the limited tenant may, or more. */
export const FLOODS: readonly Flood[] = [
  {
    title: `${FLOOD_STREAMS} streams`,
    run: async ({ bulk }, seconds) => {
      const program = new URL('../load/bulk-flood-process.ts', import.meta.url);
      const { bytes } = await runGenerator<StreamFloodReport>(program, [bulk, seconds, FLOOD_STREAMS]);
      return `${Math.round((bytes * 8) / 1e6 / seconds)} Mbit/s`;
    },
  },
  {
    title: `${FLOOD_CONNECTIONS_PER_SECOND} connections a second`,
    run: async ({ answers }, seconds) => {
      const program = new URL('../load/connect-flood-process.ts', import.meta.url);
      const { begun, answered } = await runGenerator<ConnectionFloodReport>(program, [
        answers,
        seconds,
        FLOOD_CONNECTIONS_PER_SECOND,
      ]);
      return `${answered} of ${begun} answered`;
    },
  },
];
