import type { Protocol } from '../table/entry.ts';

/** One listener: a port on a node. */
export interface PortView {
  readonly port: number;
  readonly protocol: Protocol;
  readonly node: string;
  readonly address: string;
  readonly bound: boolean;
  readonly listening: boolean;
  readonly error: string | null;
}
