// Runs one fault of the fault suite, so that the suite itself stays correct. `npm run e2e -- faults` runs all faults.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { insideNamespace, requireProgram } from '@weir/tools';
import { FAULT_ADDRESSES, startFaultFleet } from '../src/faults/fault-fleet.ts';
import { REDIS_KILLED } from '../src/faults/faults.ts';
import { findingsFor, runFault } from '../src/faults/run-fault.ts';

const requirement = {
  ...requireProgram('redis', 'kubernetes'),
  ...insideNamespace({ addresses: FAULT_ADDRESSES, mounts: true }),
};

describe('a fleet under load', { ...requirement, timeout: 300_000 }, () => {
  test('loses no operation and no byte, and keeps Suspensions and limits, when Redis is killed', async () => {
    await using bench = await startFaultFleet();
    assert.deepEqual(findingsFor(await runFault(REDIS_KILLED, bench, { loadAfterFaultMs: 1_000 })), []);
  });
});
