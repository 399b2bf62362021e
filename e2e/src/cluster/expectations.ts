// What the tests on the cluster say again and again.
import assert from 'node:assert/strict';
import { eventually } from '@weir/testkit';
import { addressesIn, conditionIn, type ServiceStatus, statusWhen } from '../kubernetes-objects.ts';
import { type Answer, ask, type Question } from './ask.ts';
import type { InCluster } from './in-cluster.ts';

export type Asked = Omit<Question, 'host'>;

/** Published on both nodes, with nothing to complain about. */
export async function servedWell(fleet: InCluster, path: string): Promise<ServiceStatus> {
  const status = await statusWhen(
    fleet.cluster,
    path,
    (now) => addressesIn(now).length === fleet.addresses.length && conditionIn(now, 'Degraded') === undefined,
  );
  assert.deepEqual(addressesIn(status), fleet.addresses);
  assert.equal(conditionIn(status, 'Programmed')?.status, 'True');
  return status;
}

/** Soon, and from then on. */
export async function comesTo(fleet: InCluster, asked: Asked, kind: Answer['kind']): Promise<void> {
  for (const host of fleet.addresses) {
    await eventually(async () => assertKind({ ...asked, host }, kind), { timeoutMs: 15_000, intervalMs: 100 });
  }
  await staysAt(fleet, asked, kind);
}

/** A few times in a row at each address, so that every worker of every proxy is met. */
export async function staysAt(fleet: InCluster, asked: Asked, kind: Answer['kind']): Promise<void> {
  const times = kind === 'silent' ? 1 : 8;
  for (const host of fleet.addresses) {
    for (let time = 0; time < times; time++) await assertKind({ ...asked, host }, kind);
  }
}

async function assertKind(question: Question, kind: Answer['kind']): Promise<void> {
  const answer = await ask(question);
  assert.equal(answer.kind, kind, `${question.host}:${question.port} ${question.protocol ?? 'TCP'}`);
}

/** The pods that so many new connections meet at one address. */
export async function podsMet(question: Question, times: number): Promise<ReadonlySet<string>> {
  const pods = new Set<string>();
  for (let time = 0; time < times; time++) {
    const answer = await ask(question);
    assert.equal(answer.kind, 'answered');
    if (answer.kind === 'answered') pods.add(answer.pod);
  }
  return pods;
}
