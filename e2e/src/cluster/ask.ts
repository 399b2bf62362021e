// A client that asks a pod for its name, and says how that went.
import { connectClient, type TestClient } from '@weir/testkit';
import { udpClient } from './udp-client.ts';

export type ProbeResult =
  | { readonly kind: 'answered'; readonly pod: string }
  /** By the kernel: RST to the SYN, or ICMP "port unreachable". */
  | { readonly kind: 'refused' }
  /** Accepted, and then ended without a word. */
  | { readonly kind: 'cut' }
  | { readonly kind: 'silent' };

export interface ProbeTarget {
  readonly host: string;
  readonly port: number;
  readonly protocol?: 'TCP' | 'UDP';
  /** The address to ask from. */
  readonly from?: string;
}

export function probe(question: ProbeTarget): Promise<ProbeResult> {
  return question.protocol === 'UDP' ? probeUdp(question) : probeTcp(question);
}

async function probeTcp({ host, port, from }: ProbeTarget): Promise<ProbeResult> {
  let client: TestClient;
  try {
    client = await connectClient({
      host,
      port,
      timeoutMs: 5000,
      ...(from === undefined ? {} : { localAddress: from }),
    });
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

async function probeUdp({ host, port, from }: ProbeTarget): Promise<ProbeResult> {
  await using client = await udpClient({ host, port, from });
  try {
    const pod = await client.requestPodName();
    return pod === undefined ? { kind: 'silent' } : { kind: 'answered', pod };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return { kind: 'refused' };
    throw error;
  }
}
