import type { TestClient, TestClientOptions } from '@weir/testkit';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';

/** Streams under test, and who is at their other end. */
export interface StreamSetup {
  readonly name: string;
  readonly transport: TcpTransport;
  connect(options: TestClientOptions): Promise<TestClient>;
}
