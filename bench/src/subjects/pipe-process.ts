// Program `pipe-process.ts LISTEN:TARGET …`: relays from each port LISTEN to the port TARGET, both at 127.0.0.1, with socket.pipe().
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

const host = '127.0.0.1';

for (const route of process.argv.slice(2)) {
  const [port, target] = route.split(':').map(Number);
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (downstream) => relay(downstream, target ?? 0));
  await once(server.listen({ host, port: port ?? 0, backlog: 4096 }), 'listening');
}
console.log('ready');

function relay(downstream: Socket, target: number): void {
  const upstream = connect({ host, port: target, allowHalfOpen: true, noDelay: true });
  downstream.pipe(upstream).pipe(downstream);
  downstream.on('error', () => upstream.destroy());
  upstream.on('error', () => downstream.destroy());
}
