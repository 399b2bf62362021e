// A process of its own: `open-loop-process.ts PORT RATE SECONDS CONNECTIONS`. Sends RATE messages of 64 bytes a second to an echo, evenly
// spaced and over all connections in turn, whatever has come back, and measures each from the moment at which it was to be sent:
// when the generator or the proxy is late, all that waited count (no coordinated omission). It never sleeps, since a timer is a
// millisecond late. Prints one line of JSON.

import { LatencyHistogram } from '../measure/statistics.ts';
import { EchoConnection } from './echo-connection.ts';
import type { OpenLoopReport } from './generators.ts';

/** Before it counts: code is compiled, buffers are warm. */
const WARM_UP_MS = 300;
const SILENCE_TIMEOUT_MS = 5_000;

const [port = 0, rate = 0, seconds = 0, connections = 0] = process.argv.slice(2).map(Number);
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
  Array.from({ length: connections }, (_, line) => EchoConnection.open({ port, line, onEcho })),
);

const beginAt = performance.now();
countFrom = beginAt + WARM_UP_MS;
const total = Math.floor((rate * (WARM_UP_MS + seconds * 1000)) / 1000);
let sent = 0;
let isOverloaded = false;
await new Promise<void>((resolve, reject) => {
  const turn = (): void => {
    const now = performance.now();
    sendDueMessages(now);
    if (echoed === total || isOverloaded) resolve();
    else if (sent === total && now - Math.max(lastEchoAt, beginAt) > SILENCE_TIMEOUT_MS) {
      reject(new Error(`${total - echoed} of ${total} messages did not come back in ${SILENCE_TIMEOUT_MS} ms`));
    } else setImmediate(turn);
  };
  turn();
});
const report: OpenLoopReport = isOverloaded
  ? { kind: 'overloaded', sent, echoed }
  : {
      kind: 'measured',
      messages: total,
      counted: latencies.count,
      ms: performance.now() - beginAt,
      p50: latencies.percentile(0.5),
      p99: latencies.percentile(0.99),
    };
console.log(`report ${JSON.stringify(report)}`);
if (isOverloaded) process.exit(0);
await Promise.all(connectionPool.map((line) => line.close()));

function sendDueMessages(now: number): void {
  for (; sent < total; sent++) {
    const dueAt = beginAt + (sent * 1000) / rate;
    if (dueAt > now) return;
    if (connectionPool[sent % connections]?.send(dueAt) === false) {
      isOverloaded = true;
      return;
    }
  }
}
