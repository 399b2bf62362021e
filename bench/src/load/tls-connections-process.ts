// Program `tls-connections-process.ts PORT SECONDS CONNECTIONS RESUMES REQUEST BODY`: opens TLS connections for SECONDS, CONNECTIONS at the
// same time. Each sends REQUEST, which asks for the end of the connection, and expects a response with the status 200 and BODY. With
// RESUMES = 1, each connection resumes the session of a first connection, which the report does not count as resumed.
// Prints the report as a line of JSON.
import { once } from 'node:events';
import { connect } from 'node:tls';
import type { TlsConnectionsReport } from './generators.ts';

const [port = 0, seconds = 0, connections = 0, resumes = 0] = process.argv.slice(2, 6).map(Number);
const [request = '', expectedBody = ''] = process.argv.slice(6);
const report = { connections: 0, resumed: 0, sentBytes: 0, receivedBytes: 0 };
let session: Buffer | undefined;

if (resumes === 1) await connectOnce();
const startedAt = performance.now();
const endsAt = startedAt + seconds * 1000;
await Promise.all(
  Array.from({ length: connections }, async () => {
    while (performance.now() < endsAt) await connectOnce();
  }),
);
console.log(
  `report ${JSON.stringify({ ...report, ms: performance.now() - startedAt } satisfies TlsConnectionsReport)}`,
);

async function connectOnce(): Promise<void> {
  const socket = connect({
    host: '127.0.0.1',
    port,
    servername: 'bench.example',
    rejectUnauthorized: false, // the certificate is self-signed
    minVersion: 'TLSv1.3',
    ecdhCurve: 'X25519', // the default of Node, X25519MLKEM768, is missing from OpenSSL 3.0, which some proxies use
    ...(session === undefined ? {} : { session }),
  });
  let response = '';
  // RFC 8446 §4.6.1: the ticket of a session comes after the handshake.
  socket.on('session', (latest: Buffer) => {
    if (resumes === 1) session = latest;
  });
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    response += text;
  });
  socket.write(request);
  await once(socket, 'end');
  const isResumed = socket.isSessionReused();
  socket.end();
  if (!response.startsWith('HTTP/1.1 200 ') || !response.endsWith(`\r\n\r\n${expectedBody}`)) {
    throw new Error(`not the expected response: ${response.slice(0, 200)}`);
  }
  report.connections++;
  if (isResumed) report.resumed++;
  report.sentBytes += request.length;
  report.receivedBytes += response.length;
}
