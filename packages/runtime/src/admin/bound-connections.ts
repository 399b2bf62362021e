import type { Server } from 'node:http';
import type { Clock } from '../clock/clock.ts';

/** Nobody asks more of it than a scraper, two probes and a person; a flood must not cost the process its descriptors. */
const MAX_OPEN_CONNECTIONS = 256;
/** New ones per second: a TLS handshake takes up to a millisecond, which the thread needs for what the process is there for. */
const MAX_NEW_CONNECTIONS_PER_WINDOW = 200;
const CONNECTION_WINDOW_MS = 1_000;

/** How many connections a server takes, at once and per second; it closes the others as soon as they are there. */
export function limitConnections(server: Server, clock: Clock): void {
  let began = Number.NEGATIVE_INFINITY;
  let count = 0;
  server.maxConnections = MAX_OPEN_CONNECTIONS;
  server.on('connection', () => {
    const now = clock.monotonic();
    if (now - began >= CONNECTION_WINDOW_MS) {
      began = now;
      count = 0;
    }
    count += 1;
    if (count < MAX_NEW_CONNECTIONS_PER_WINDOW) return;
    server.maxConnections = 0;
    clock.setTimeout(
      () => {
        server.maxConnections = MAX_OPEN_CONNECTIONS;
      },
      began + CONNECTION_WINDOW_MS - now,
    );
  });
}
