import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_READ_BYTES, MIN_READ_BYTES, RecordQuantum } from '../../../src/transport/tls/record-quantum.ts';

const RECORD_OVERHEAD = 22;

/** Reads records with `recordBytes` of data each, as they arrive in a long stream. */
function read(quantum: RecordQuantum, { recordBytes, reads }: { recordBytes: number; reads: number }): void {
  let pending = 0;
  for (let count = 0; count < reads; count += 1) {
    pending += quantum.bytes;
    const records = Math.floor(pending / (recordBytes + RECORD_OVERHEAD));
    pending -= records * (recordBytes + RECORD_OVERHEAD);
    quantum.adapt(quantum.bytes, records * recordBytes);
  }
}

test('reads more at once from a client that sends much data', () => {
  const quantum = new RecordQuantum();
  assert.equal(quantum.bytes, MIN_READ_BYTES);
  for (const recordBytes of [16_384, 4_096, 1_300]) {
    read(quantum, { recordBytes, reads: 1_000 });
    assert.equal(quantum.bytes, MAX_READ_BYTES);
  }
});

test('reads little at once from a client whose records contain little data', () => {
  for (const recordBytes of [0, 1, 100]) {
    const quantum = new RecordQuantum();
    for (let count = 0; count < 1_000; count += 1) {
      read(quantum, { recordBytes, reads: 1 });
      assert.equal(quantum.bytes, MIN_READ_BYTES);
    }
  }
});

test('notices within three reads that a client no longer sends data, whatever the client has sent before', () => {
  const quantum = new RecordQuantum();
  read(quantum, { recordBytes: 16_384, reads: 10_000 });
  for (let count = 0; count < 3; count += 1) quantum.adapt(quantum.bytes, 0);
  assert.equal(quantum.bytes, MIN_READ_BYTES);
});
