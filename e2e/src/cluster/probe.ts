import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { addressesIn, conditionIn, type ServiceStatus, waitForStatus } from '../service-status.ts';
import type { ClusterFleet } from './node-fleet.ts';

// A client that asks a pod for its name, and says how that went.
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

// A UDP client that keeps its port, as players and VPNs do.
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

// What the tests on the cluster say again and again.
export type ProbePort = Omit<ProbeTarget, 'host'>;

/** Published on both nodes, with nothing to complain about. */
export async function waitUntilServed(fleet: ClusterFleet, path: string): Promise<ServiceStatus> {
  const status = await waitForStatus(
    fleet.cluster,
    path,
    (now) => addressesIn(now).length === fleet.addresses.length && conditionIn(now, 'Degraded') === undefined,
  );
  assert.deepEqual(addressesIn(status), fleet.addresses);
  assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
  return status;
}

/** Soon, and from then on. */
export async function waitForProbeResult(
  fleet: ClusterFleet,
  asked: ProbePort,
  kind: ProbeResult['kind'],
): Promise<void> {
  for (const host of fleet.addresses) {
    await eventually(async () => assertProbeOnce({ ...asked, host }, kind), { timeoutMs: 15_000, intervalMs: 100 });
  }
  await assertProbeResult(fleet, asked, kind);
}

/** A few times in a row at each address, so that every worker of every proxy is met. */
export async function assertProbeResult(
  fleet: ClusterFleet,
  asked: ProbePort,
  kind: ProbeResult['kind'],
): Promise<void> {
  const times = kind === 'silent' ? 1 : 8;
  for (const host of fleet.addresses) {
    for (let time = 0; time < times; time++) await assertProbeOnce({ ...asked, host }, kind);
  }
}

async function assertProbeOnce(question: ProbeTarget, kind: ProbeResult['kind']): Promise<void> {
  const answer = await probe(question);
  assert.equal(answer.kind, kind, `${question.host}:${question.port} ${question.protocol ?? 'TCP'}`);
}

/** The pods that so many new connections meet at one address. */
export async function podsReached(question: ProbeTarget, times: number): Promise<ReadonlySet<string>> {
  const pods = new Set<string>();
  for (let time = 0; time < times; time++) {
    const answer = await probe(question);
    assert.equal(answer.kind, 'answered');
    if (answer.kind === 'answered') pods.add(answer.pod);
  }
  return pods;
}
