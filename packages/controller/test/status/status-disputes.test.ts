// Another controller writes the status of the same Service, as ServiceLB of k3s does.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ServiceView } from '@weir/model';
import { createStatusHarness } from '../fixtures/kubernetes-status.ts';
import { programmed, type RawService, rawService, statusFieldsOf, view } from '../fixtures/views.ts';

interface AppliedStatus {
  readonly loadBalancer?: { readonly ingress: readonly { readonly ip: string }[] };
  readonly conditions: readonly { readonly type: string; readonly reason: string; readonly message: string }[];
}

/** Starts a writer of status, and another controller that overwrites each written status while `isFighting`. */
function startDispute() {
  const { api, clock, status, write } = createStatusHarness();
  const applied = (): AppliedStatus[] => api.applied.map(({ body }) => (body as { status: AppliedStatus }).status);
  let version = 1_000;
  const overwrite = ({ conditions }: AppliedStatus): void => {
    const raw = rawService({ loadBalancer: { ingress: [{ ip: '10.9.9.9' }] }, conditions }) as unknown as RawService;
    version += 1;
    const managedFields = [
      ...statusFieldsOf('weir-controller', { conditions }),
      ...statusFieldsOf('k3s', { loadBalancer: {} }),
    ];
    status.observe('web', { ...raw, metadata: { ...raw.metadata, resourceVersion: String(version), managedFields } });
  };
  status.observe('web', rawService());
  const dispute = {
    api,
    isFighting: true,
    overwrite: (): void => overwrite(applied().at(-1) ?? assert.fail('nothing was written')),
    /** Returns each written status as its addresses and the reason of its Degraded condition. */
    writes: (): string[] =>
      applied().map(({ loadBalancer, conditions }) => {
        const ips = (loadBalancer?.ingress ?? []).map(({ ip }) => ip).join();
        return `${ips || '-'} ${conditions.find(({ type }) => type === 'weir.dev/Degraded')?.reason ?? '-'}`;
      }),
    lastMessage: (): string => applied().at(-1)?.conditions.at(-1)?.message ?? '',
    /** Runs the writer once a second, and again at once after each overwrite. Returns the seconds with a write. */
    async run(seconds: number, each: ServiceView): Promise<number[]> {
      const times: number[] = [];
      for (let second = 0; second < seconds; second += 1) {
        for (;;) {
          const before = api.applied.length;
          await write(each);
          if (api.applied.length === before) break;
          times.push(second);
          if (!dispute.isFighting) break;
          dispute.overwrite();
        }
        await clock.advance(1_000);
      }
      return times;
    },
  };
  return dispute;
}

describe('the status that another controller overwrites', () => {
  test('is written five times, then with the name of the other controller, and at last every five minutes', async () => {
    const dispute = startDispute();
    const web = view();
    await dispute.run(15, web);
    assert.deepEqual(dispute.writes(), [...Array(5).fill('10.0.0.1 -'), '10.0.0.1 ForeignController']);
    assert.match(dispute.lastMessage(), /the field manager "k3s" overwrites the status/);
    const events = [...dispute.api.events.values()].map(({ type, reason }) => `${type} ${reason}`);
    assert.deepEqual(events, ['Normal Programmed', 'Warning ForeignController']);
    const times = await dispute.run(3_600, web);
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    assert.deepEqual(gaps.slice(0, 4), [60, 120, 240, 300]);
    assert.ok(gaps.slice(3).every((gap) => gap >= 300 && gap <= 330));
  });

  test('keeps the foreign addresses when conditions change, and shows the changed conditions after one write', async () => {
    const dispute = startDispute();
    await dispute.run(15, view());
    const { length } = dispute.writes();
    const changed = view({ conditions: [{ ...programmed, message: 'served elsewhere' }] });
    await dispute.run(10, changed);
    assert.deepEqual(dispute.writes().slice(length), ['- ForeignController']);
  });

  test('names the other controller until ten minutes after its last write', async () => {
    const dispute = startDispute();
    const web = view();
    await dispute.run(15, web);
    dispute.isFighting = false;
    await dispute.run(9 * 60, web);
    assert.equal(dispute.writes().at(-1), '10.0.0.1 ForeignController');
    await dispute.run(2 * 60, web);
    assert.equal(dispute.writes().at(-1), '10.0.0.1 -');
    const { length } = dispute.writes();
    await dispute.run(60, web);
    assert.equal(dispute.writes().length, length);
  });

  test('is written at once after each overwrite if overwrites are rare', async () => {
    const dispute = startDispute();
    dispute.isFighting = false;
    const web = view();
    await dispute.run(1, web);
    for (let time = 0; time < 10; time += 1) {
      dispute.overwrite();
      assert.deepEqual(await dispute.run(20, web), [0]);
    }
    assert.ok(dispute.writes().every((line) => line === '10.0.0.1 -'));
  });
});
