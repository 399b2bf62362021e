// Injects each fault into a fleet under load. Clients count operations and bytes; no operation may fail that the fault does not itself cut,
// the ledger must equal the counts, Suspensions and limits must hold. Takes about half an hour: npm run e2e -- faults
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { insideNamespace, requireProgram } from '@weir/tools';
import { FAULT_ADDRESSES, type FaultFleet, startFaultFleet } from '../../src/faults/fault-fleet.ts';
import { FAULTS } from '../../src/faults/faults.ts';
import { formatResults, writeResults } from '../../src/faults/reliability-page.ts';
import { type FaultResult, findingsFor, runFault } from '../../src/faults/run-fault.ts';

const requirement = {
  ...requireProgram('redis', 'kubernetes', 'nft', 'faketime'),
  ...insideNamespace({ addresses: FAULT_ADDRESSES, mounts: true }),
};

describe('a fleet under load', { ...requirement, timeout: 2_700_000 }, () => {
  let faultFleet: FaultFleet;
  const results: FaultResult[] = [];
  before(
    async () => {
      faultFleet = await startFaultFleet();
    },
    { timeout: 300_000 },
  );
  after(
    async () => {
      await faultFleet?.close();
      if (results.length > 0) console.log(`\n${formatResults(results)}\n`);
      // UPDATE_GOLDEN=1 writes the results of a complete run into docs/reliability.md.
      if (process.env.UPDATE_GOLDEN === '1' && results.length === FAULTS.length)
        writeResults(results, { day: new Date().toISOString().slice(0, 10) });
    },
    { timeout: 60_000 },
  );

  for (const fault of FAULTS) {
    test(`survives: ${fault.name}`, { timeout: 300_000 + fault.seconds * 1_000 }, async () => {
      const result = await runFault(fault, faultFleet).catch((error) => {
        console.error(faultFleet.fleet.output());
        throw error;
      });
      results.push(result);
      const findings = findingsFor(result);
      if (findings.length > 0) console.error(faultFleet.fleet.output());
      assert.deepEqual(findings, []);
    });
  }
});
