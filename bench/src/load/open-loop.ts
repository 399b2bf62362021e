import { runGenerator } from './run-generator.ts';

export type OpenLoopReport =
  /** So much was behind that it gave up. */
  | { readonly kind: 'overloaded'; readonly sent: number; readonly echoed: number }
  | {
      readonly kind: 'measured';
      /** Sent and come back, those before it began to count included. */
      readonly messages: number;
      readonly counted: number;
      readonly ms: number;
      /** In µs. */
      readonly p50: number;
      readonly p99: number;
    };

export type OpenLoopOptions = {
  readonly port: number;
  /** Messages per second, over all connections. */
  readonly rate: number;
  readonly seconds: number;
  readonly connections: number;
};

/** Messages of 64 bytes at a fixed rate to an echo. Throws when a byte comes back wrong, or does not. */
export function runOpenLoop({ port, rate, seconds, connections }: OpenLoopOptions): Promise<OpenLoopReport> {
  return runGenerator(new URL('./open-loop-process.ts', import.meta.url), [port, rate, seconds, connections]);
}
