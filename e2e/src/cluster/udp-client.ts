// A UDP client that keeps its port, as players and VPNs do.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';

export interface UdpClient extends AsyncDisposable {
  /** The pod that answers, or undefined when nobody does for a while; throws what the kernel was told, such as ECONNREFUSED. */
  requestPodName(): Promise<string | undefined>;
}

const UDP_REPLY_TIMEOUT_MS = 1500;

export async function udpClient({
  host,
  port,
  from,
}: {
  readonly host: string;
  readonly port: number;
  readonly from?: string | undefined;
}): Promise<UdpClient> {
  const socket = createSocket('udp4');
  socket.bind({ port: 0, ...(from === undefined ? {} : { address: from }) });
  await once(socket, 'listening');
  socket.connect(port, host);
  await once(socket, 'connect');
  let asked = 0;
  return {
    async requestPodName() {
      const word = String(++asked);
      const signal = AbortSignal.timeout(UDP_REPLY_TIMEOUT_MS);
      socket.send(word);
      try {
        for (;;) {
          const [message] = (await once(socket, 'message', { signal })) as [Buffer];
          const [pod, echoed] = String(message).split(' ');
          // not the late answer to an earlier question
          if (echoed === word) return pod;
        }
      } catch (error) {
        if ((error as Error).name === 'AbortError') return undefined;
        throw error;
      }
    },
    async [Symbol.asyncDispose]() {
      socket.close();
    },
  };
}
