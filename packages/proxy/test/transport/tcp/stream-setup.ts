import type { TestClient, TestClientOptions } from '@weir/testkit';
import type { TcpTransport } from '../../../src/transport/tcp-transport.ts';

/** A stream transport under test, and how a test client connects to it. */
export interface StreamSetup {
  readonly name: string;
  readonly transport: TcpTransport;
  connect(options: TestClientOptions): Promise<TestClient>;
}
