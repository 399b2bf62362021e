// The members of a line for a TCP connection or a UDP flow. The docs list them (docs/access-log.md).
import type { Client, Endpoint } from '@weir/model/data-plane';
import { asciiBytes, type ByteWriter } from '../http/passes/byte-writer.ts';
import { isRefusal, type Outcome } from '../metering/outcome.ts';
import type { DownstreamInfo } from '../relay/downstream-info.ts';
import type { SocketAddress } from '../transport/tcp-transport.ts';
import { writeMs } from './json-writer.ts';
import { tlsText, writeEndpoint } from './log-line.ts';

/** A connection or flow that has ended, or that was refused. */
export interface EndedConnection {
  readonly protocol: 'TCP' | 'UDP';
  readonly client: Client;
  /** The address to which the client connected. */
  readonly destination: SocketAddress;
  /** What is known about TLS; absent for UDP. */
  readonly info?: Pick<DownstreamInfo, 'tls' | 'hasClientHello' | 'serverName'>;
  readonly outcome: Outcome;
  readonly receivedBytes: number;
  readonly sentBytes: number;
  readonly durationMs: number;
  /** The endpoint that was tried last; undefined if none was tried. */
  readonly endpoint: Endpoint | undefined;
  readonly attempts: number;
}

const CLIENT: Uint8Array = asciiBytes(',"client":');
const CLIENT_PORT: Uint8Array = asciiBytes(',"clientPort":');
const PROTOCOLS: Readonly<Record<EndedConnection['protocol'], Uint8Array>> = {
  TCP: asciiBytes(',"protocol":"TCP","listener":'),
  UDP: asciiBytes(',"protocol":"UDP","listener":'),
};
const OUTCOME: Uint8Array = asciiBytes(',"outcome":"');
const REASON: Uint8Array = asciiBytes('","reason":');
const RECEIVED_BYTES: Uint8Array = asciiBytes(',"receivedBytes":');
const SENT_BYTES: Uint8Array = asciiBytes(',"sentBytes":');
const DURATION_MS: Uint8Array = asciiBytes(',"durationMs":');
const ENDPOINT: Uint8Array = asciiBytes(',"endpoint":');
const ATTEMPTS: Uint8Array = asciiBytes(',"attempts":');
const TLS: Uint8Array = asciiBytes(',"tls":');
const NULL: Uint8Array = asciiBytes('null');
const LINE_END: Uint8Array = asciiBytes('}\n');
const QUOTE = 0x22;

/** Writes the members from `client` to the end of the line. */
export function writeConnection(out: ByteWriter, connection: EndedConnection): void {
  const { protocol, client, destination, info, outcome, endpoint } = connection;
  const { address } = client;
  out.bytes(CLIENT);
  // The kernel gives no address for a client that has disconnected.
  if (address === '') out.bytes(NULL);
  else writeAscii(out, address);
  out.bytes(CLIENT_PORT);
  if (address === '') out.bytes(NULL);
  else out.decimal(client.port);
  out.bytes(PROTOCOLS[protocol]);
  writeEndpoint(out, destination);
  out.bytes(OUTCOME);
  out.ascii(outcome);
  out.bytes(REASON);
  if (isRefusal(outcome)) writeAscii(out, outcome);
  else out.bytes(NULL);
  out.bytes(RECEIVED_BYTES);
  out.decimal(connection.receivedBytes);
  out.bytes(SENT_BYTES);
  out.decimal(connection.sentBytes);
  out.bytes(DURATION_MS);
  writeMs(out, connection.durationMs);
  out.bytes(ENDPOINT);
  if (endpoint === undefined) out.bytes(NULL);
  else writeEndpoint(out, endpoint);
  out.bytes(ATTEMPTS);
  out.decimal(connection.attempts);
  out.bytes(TLS);
  out.bytes(info === undefined ? NULL : tlsText(info));
  out.bytes(LINE_END);
}

function writeAscii(out: ByteWriter, text: string): void {
  out.byte(QUOTE);
  out.ascii(text);
  out.byte(QUOTE);
}
