import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Suspension } from '@weir/model';
import { ManualClock } from '@weir/runtime';
import { MemoryStore } from '@weir/store';
import { patientSuspensionStore } from '../../src/suspensions/patient-suspension-store.ts';

const SUSPENSION: Suspension = {
  uid: 'request-1',
  name: 'tenant.shop',
  target: { kind: 'tenant', tenant: 'shop' },
  message: 'audit',
  until: null,
  reason: 'SuspendedByOperator',
  origin: { kind: 'store' },
  createdAt: 0,
};

test('writes a suspension once the store is reachable again', async () => {
  const { clock, store, patient } = fixture();
  store.faults.goAway();
  const written = patient.put(SUSPENSION);
  await clock.advance(1_000);
  store.faults.comeBack();
  await clock.advance(100);
  await written;
  assert.deepEqual((await patient.read()).suspensions, [SUSPENSION]);
});

test('rejects after 3 s without the store', async () => {
  const { clock, store, patient } = fixture();
  store.faults.goAway();
  const outcome = assert.rejects(patient.put(SUSPENSION), { code: 'AWAY' });
  await clock.advance(3_000);
  await outcome;
});

test('rejects at once for any other reason', async () => {
  const { clock, store } = fixture();
  const broken = Object.assign(Object.create(store.suspensions), { put: () => Promise.reject(new Error('too large')) });
  await assert.rejects(patientSuspensionStore(broken, clock).put(SUSPENSION), /too large/);
});

function fixture() {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  return { clock, store, patient: patientSuspensionStore(store.suspensions, clock) };
}
