import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { addressesIn, conditionIn, type ServiceStatus, waitForStatus } from '../service-status.ts';
import type { ClusterFleet } from './node-fleet.ts';

// The result of a probe. A probe is a client that asks a pod for its name.
export type ProbeResult =
  | { readonly kind: 'answered'; readonly pod: string }
  /** The kernel refused the client: RST in reply to the SYN, or ICMP "port unreachable". */
  | { readonly kind: 'refused' }
  /** The connection was accepted and closed without data. */
  | { readonly kind: 'closed' }
  | { readonly kind: 'silent' };

export interface ProbeTarget {
  readonly host: string;
  readonly port: number;
  readonly protocol?: 'TCP' | 'UDP';
  /** The local address of the client. */
  readonly from?: string;
}

export function probe(target: ProbeTarget): Promise<ProbeResult> {
  return target.protocol === 'UDP' ? probeUdp(target) : probeTcp(target);
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
    if ((error as NodeJS.ErrnoException).code === 'ECONNRESET') return { kind: 'closed' };
    throw error;
  }
  try {
    return { kind: 'answered', pod: String(await client.take(/\n/)).trim() };
  } catch {
    const ending = await Promise.race([client.ended, undefined]);
    return ending === undefined ? { kind: 'silent' } : { kind: 'closed' };
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

// A UDP client that keeps its local port, as clients of games and VPNs do.
export interface UdpClient extends AsyncDisposable {
  /**
   * Returns the name of the responding pod, or undefined after a timeout. Throws the errors that the kernel reports, such as ECONNREFUSED.
   */
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
  let requestCount = 0;
  return {
    async requestPodName() {
      const word = String(++requestCount);
      const signal = AbortSignal.timeout(UDP_REPLY_TIMEOUT_MS);
      socket.send(word);
      try {
        for (;;) {
          const [message] = (await once(socket, 'message', { signal })) as [Buffer];
          const [pod, echoed] = String(message).split(' ');
          // Ignores late responses to earlier requests.
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

// Assertions for tests on a cluster.

export type ProbePort = Omit<ProbeTarget, 'host'>;

/** Waits until the Service is published on all nodes without a Degraded condition. */
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

/** Waits until each address returns a result of this kind, and then asserts that the result is stable. */
export async function waitForProbeResult(
  fleet: ClusterFleet,
  port: ProbePort,
  kind: ProbeResult['kind'],
): Promise<void> {
  for (const host of fleet.addresses) {
    await eventually(async () => assertProbeOnce({ ...port, host }, kind), { timeoutMs: 15_000, intervalMs: 100 });
  }
  await assertProbeResult(fleet, port, kind);
}

/**
 * Asserts the kind of result at each address. Probes each address several times, so that the connections reach every worker of every proxy.
 */
export async function assertProbeResult(
  fleet: ClusterFleet,
  port: ProbePort,
  kind: ProbeResult['kind'],
): Promise<void> {
  const times = kind === 'silent' ? 1 : 8;
  for (const host of fleet.addresses) {
    for (let time = 0; time < times; time++) await assertProbeOnce({ ...port, host }, kind);
  }
}

async function assertProbeOnce(target: ProbeTarget, kind: ProbeResult['kind']): Promise<void> {
  const result = await probe(target);
  assert.equal(result.kind, kind, `${target.host}:${target.port} ${target.protocol ?? 'TCP'}`);
}

/** Returns the names of the pods that `times` new connections to one address reach. */
export async function podsReached(target: ProbeTarget, times: number): Promise<ReadonlySet<string>> {
  const pods = new Set<string>();
  for (let time = 0; time < times; time++) {
    const result = await probe(target);
    assert.equal(result.kind, 'answered');
    if (result.kind === 'answered') pods.add(result.pod);
  }
  return pods;
}
