import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { freePort } from '@weir/testkit';
import type { BackendPorts } from './subject.ts';

export async function freePorts(): Promise<BackendPorts> {
  return { http: await freePort(), stream: await freePort(), echo: await freePort(), datagrams: await freeUdpPort() };
}

async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4').bind({ address: '127.0.0.1', port: 0 });
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  await once(socket, 'close');
  return port;
}
