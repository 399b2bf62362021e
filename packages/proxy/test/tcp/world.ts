import type { RawClient, RawClientOptions } from '@weir/testkit';
import type { Transport } from '../../src/tcp/transport.ts';

/** Streams under test, and who is at their other end. */
export interface World {
  readonly name: string;
  readonly transport: Transport;
  connect(options: RawClientOptions): Promise<RawClient>;
}
