// What the tests on the cluster say again and again.
import assert from 'node:assert/strict';
import { eventually } from '@weir/testkit';
import { addressesIn, conditionIn, type ServiceStatus, waitForStatus } from '../kubernetes-objects.ts';
import { type ProbeResult, type ProbeTarget, probe } from './ask.ts';
import type { ClusterFleet } from './in-cluster.ts';

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
