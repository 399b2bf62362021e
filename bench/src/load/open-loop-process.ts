// Program `open-loop-process.ts PORT RATE SECONDS CONNECTIONS [REQUEST BODY]`: measures latencies at a fixed rate. Sends RATE evenly spaced
// messages of 64 bytes a second to an echo backend, without waiting for echoes. With REQUEST and BODY, sends this HTTP/1.1 request instead,
// and expects responses with this body. A latency counts from the time at which the message was due, so that
// delays of the generator are included (no coordinated omission). Timers are up to a millisecond late, so the loop sleeps only while no
// message is due within the next two milliseconds.
// Prints the report as a line of JSON.

import { LatencyHistogram } from '../measure/statistics.ts';
import { EchoConnection } from './echo-connection.ts';
import type { OpenLoopReport } from './generators.ts';
import { RequestConnection } from './request-connection.ts';

/** Latencies in this first part do not count, because Node still compiles hot code. */
const WARM_UP_MS = 300;
const SILENCE_TIMEOUT_MS = 5_000;
const MIN_SLEEP_MS = 2;

const [port = 0, rate = 0, seconds = 0, connections = 0] = process.argv.slice(2, 6).map(Number);
const [request, expectedBody = ''] = process.argv.slice(6);
const latencies = new LatencyHistogram();
let countFrom = Number.POSITIVE_INFINITY;
let echoed = 0;
let lastEchoAt = 0;

const onEcho = (dueAt: number): void => {
  lastEchoAt = performance.now();
  echoed++;
  if (dueAt >= countFrom) latencies.add(lastEchoAt - dueAt);
};
const connectionPool = await Promise.all(
  Array.from(
    { length: connections },
    (_, index): Promise<EchoConnection | RequestConnection> =>
      request === undefined
        ? EchoConnection.open({ port, index, onEcho })
        : RequestConnection.open({ port, request, expectedBody, onEcho }),
  ),
);

const startedAt = performance.now();
countFrom = startedAt + WARM_UP_MS;
const total = Math.floor((rate * (WARM_UP_MS + seconds * 1000)) / 1000);
let sent = 0;
let isOverloaded = false;
await new Promise<void>((resolve, reject) => {
  const step = (): void => {
    const now = performance.now();
    sendDueMessages(now);
    if (echoed === total || isOverloaded) resolve();
    else if (sent === total && now - Math.max(lastEchoAt, startedAt) > SILENCE_TIMEOUT_MS) {
      reject(new Error(`${total - echoed} of ${total} messages were not echoed within ${SILENCE_TIMEOUT_MS} ms`));
    } else if (msUntilDue(performance.now()) > MIN_SLEEP_MS) setTimeout(step, 1);
    else setImmediate(step);
  };
  step();
});
const report: OpenLoopReport = isOverloaded
  ? { kind: 'overloaded', sent, echoed, receivedBytes: receivedBytes() }
  : {
      kind: 'measured',
      messages: total,
      counted: latencies.count,
      receivedBytes: receivedBytes(),
      ms: performance.now() - startedAt,
      p50: latencies.percentile(0.5),
      p99: latencies.percentile(0.99),
    };
console.log(`report ${JSON.stringify(report)}`);
if (isOverloaded) process.exit(0);
await Promise.all(connectionPool.map((connection) => connection.close()));

function receivedBytes(): number {
  return connectionPool.reduce((sum, { bytesReceived }) => sum + bytesReceived, 0);
}

/** Returns the time until the next message is due; 0 if no message is left to send. */
function msUntilDue(now: number): number {
  return sent === total ? 0 : startedAt + (sent * 1000) / rate - now;
}

function sendDueMessages(now: number): void {
  for (; sent < total; sent++) {
    const dueAt = startedAt + (sent * 1000) / rate;
    if (dueAt > now) return;
    if (connectionPool[sent % connections]?.send(dueAt) === false) {
      isOverloaded = true;
      return;
    }
  }
}
