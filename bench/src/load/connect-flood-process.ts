// Program `connect-flood-process.ts PORT SECONDS RATE`: opens RATE connections a second, without waiting for earlier connections, and
// sends one HTTP request on each connection. Prints the counts as a line of JSON.
import { connect, type Socket } from 'node:net';

/** While so many connections are open, the flood opens no other, because the process has a limited number of descriptors. */
const MAX_OPEN_CONNECTIONS = 5_000;
const request = 'GET / HTTP/1.1\r\nHost: flood\r\nConnection: close\r\n\r\n';

const [port = 0, seconds = 0, rate = 0] = process.argv.slice(2).map(Number);
const open = new Set<Socket>();
const count = { started: 0, answered: 0, refused: 0 };
const startedAt = performance.now();
const timer = setInterval(() => {
  const elapsedMs = performance.now() - startedAt;
  const due = Math.floor((Math.min(elapsedMs, seconds * 1000) * rate) / 1000);
  while (count.started < due && open.size < MAX_OPEN_CONNECTIONS) openConnection();
  if (elapsedMs < seconds * 1000) return;
  clearInterval(timer);
  console.log(`report ${JSON.stringify(count)}`);
  for (const socket of open) socket.destroy();
}, 1);

function openConnection(): void {
  count.started++;
  let isAnswered = false;
  const socket = connect({ host: '127.0.0.1', port });
  open.add(socket);
  socket.on('data', () => {
    isAnswered = true;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    open.delete(socket);
    count[isAnswered ? 'answered' : 'refused']++;
  });
  socket.write(request);
}
