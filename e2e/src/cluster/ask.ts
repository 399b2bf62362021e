// A client that asks a pod for its name, and says how that went.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connectRaw, type RawClient } from '@weir/testkit';

export type Answer =
  | { readonly kind: 'answered'; readonly pod: string }
  /** By the kernel: RST to the SYN, or ICMP "port unreachable". */
  | { readonly kind: 'refused' }
  /** Accepted, and then ended without a word. */
  | { readonly kind: 'cut' }
  | { readonly kind: 'silent' };

export interface Question {
  readonly host: string;
  readonly port: number;
  readonly protocol?: 'TCP' | 'UDP';
  /** The address to ask from. */
  readonly from?: string;
}

export function ask(question: Question): Promise<Answer> {
  return question.protocol === 'UDP' ? askByUdp(question) : askByTcp(question);
}

async function askByTcp({ host, port, from }: Question): Promise<Answer> {
  let client: RawClient;
  try {
    client = await connectRaw({ host, port, timeoutMs: 5000, ...(from === undefined ? {} : { localAddress: from }) });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return { kind: 'refused' };
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return { kind: 'cut' };
    throw error;
  }
  try {
    return { kind: 'answered', pod: String(await client.take(/\n/)).trim() };
  } catch {
    const ending = await Promise.race([client.ended, undefined]);
    return ending === undefined ? { kind: 'silent' } : { kind: 'cut' };
  } finally {
    await client.close();
  }
}

async function askByUdp({ host, port, from }: Question): Promise<Answer> {
  const socket = createSocket('udp4');
  try {
    socket.bind({ port: 0, ...(from === undefined ? {} : { address: from }) });
    await once(socket, 'listening');
    socket.connect(port, host);
    await once(socket, 'connect');
    socket.send('?');
    const [message] = (await once(socket, 'message', { signal: AbortSignal.timeout(2000) })) as [Buffer];
    return { kind: 'answered', pod: String(message).replace(/ \?$/, '') };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return { kind: 'refused' };
    if ((error as Error).name === 'AbortError') return { kind: 'silent' };
    throw error;
  } finally {
    socket.close();
  }
}
