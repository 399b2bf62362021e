// Tests how the fault suite judges what its clients have seen. A suite that reports nothing must have had nothing to report.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type AdmittedConnection,
  CONNECTION_LIMIT,
  longestTimeWithoutAdmission,
  maxAdmittedWithin,
  maxOpenConnections,
  RATE_LIMIT,
} from '../src/faults/limit-clients.ts';
import { type FaultResult, findingsFor } from '../src/faults/run-fault.ts';

const connection = (start: number, confirmed: number, end: number = confirmed): AdmittedConnection => ({
  node: 'node-1',
  start,
  confirmed,
  end,
});

describe('the counts of admitted connections', () => {
  test('include only connections that were certainly open at the same time', () => {
    assert.equal(maxOpenConnections([]), 0);
    assert.equal(maxOpenConnections([connection(0, 10, 20), connection(0, 15, 30), connection(0, 20, 30)]), 2);
    assert.equal(maxOpenConnections([connection(0, 10, 20), connection(0, 12, 18), connection(0, 15, 30)]), 3);
  });

  test('include only connections that were certainly admitted within the window', () => {
    const late = connection(100, 1_600);
    assert.equal(maxAdmittedWithin([connection(0, 5), connection(10, 990), late, connection(1_001, 1_002)], 1_000), 2);
    assert.equal(maxAdmittedWithin([connection(500, 505), connection(600, 700), connection(1_499, 1_500)], 1_000), 3);
  });

  test('show the longest time without an admission, also at the start and the end', () => {
    assert.equal(longestTimeWithoutAdmission([], { from: 0, to: 700 }), 700);
    const two = [connection(390, 400), connection(95, 100)];
    assert.equal(longestTimeWithoutAdmission(two, { from: 0, to: 500 }), 300);
    assert.equal(longestTimeWithoutAdmission(two, { from: 350, to: 500 }), 100);
  });
});

const GOOD: FaultResult = {
  fault: 'a fault',
  operations: 100,
  cutOperations: 0,
  failures: [],
  wireBytes: 5_000,
  ledgerBytes: 5_000,
  differences: [],
  allowedLossBytes: 0,
  suspension: { attempts: 10, breaches: [], effectMs: 20 },
  limits: {
    maxOpen: CONNECTION_LIMIT,
    maxPerSecond: RATE_LIMIT,
    maxPerTenSeconds: 600,
    longestWithoutAdmissionMs: 300,
  },
};

const BAD: Readonly<Record<string, { readonly change: Partial<FaultResult>; readonly finding: RegExp }>> = {
  'a failed operation': { change: { failures: ['reset'] }, finding: /1 operations failed: reset/ },
  'a lost byte': {
    change: { ledgerBytes: 4_999, differences: ['tcp sent'] },
    finding: /ledger differs from the clients: tcp sent/,
  },
  'differences that add up to nothing': { change: { differences: ['tcp: 1', 'udp: -1'] }, finding: /ledger differs/ },
  'a byte that was counted twice': {
    change: { ledgerBytes: 5_001, differences: ['tcp'], allowedLossBytes: 9 },
    finding: /1 bytes more/,
  },
  'more than the allowed loss': {
    change: { ledgerBytes: 4_900, differences: ['tcp'], allowedLossBytes: 99 },
    finding: /ledger differs/,
  },
  'a served tenant that is suspended': {
    change: { suspension: { ...GOOD.suspension, breaches: ['served'] } },
    finding: /served/,
  },
  'too many connections': {
    change: { limits: { ...GOOD.limits, maxOpen: CONNECTION_LIMIT + 1 } },
    finding: /connections were open/,
  },
  'too many connections in a second': {
    change: { limits: { ...GOOD.limits, maxPerSecond: 1.2 * RATE_LIMIT } },
    finding: /in a second/,
  },
  'too many connections in 10 s': {
    change: { limits: { ...GOOD.limits, maxPerTenSeconds: 11 * RATE_LIMIT } },
    finding: /in 10 s/,
  },
  'a limit of zero': {
    change: { limits: { ...GOOD.limits, longestWithoutAdmissionMs: 20_000 } },
    finding: /no connection was admitted for 20000 ms/,
  },
};

describe('the findings of a fault', () => {
  test('are empty for a good result, and for the allowed loss', () => {
    assert.deepEqual(findingsFor(GOOD), []);
    assert.deepEqual(findingsFor({ ...GOOD, ledgerBytes: 4_990, differences: ['tcp'], allowedLossBytes: 10 }), []);
  });

  for (const [name, { change, finding }] of Object.entries(BAD)) {
    test(`contain ${name}`, () => {
      const findings = findingsFor({ ...GOOD, ...change });
      assert.equal(findings.length, 1, findings.join());
      assert.match(findings.join(), finding);
    });
  }
});
