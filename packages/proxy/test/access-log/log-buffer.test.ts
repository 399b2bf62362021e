import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { createLogFlag, LogBuffer, type LogChunk, takeNextChunk } from '../../src/access-log/log-buffer.ts';

const CAPACITY_BYTES = 262_144;

interface BufferInTest {
  readonly buffer: LogBuffer;
  readonly chunks: LogChunk[];
  /** Adds a line of `length` bytes. Returns false if the line is dropped. */
  add(tenant: string, length: number): boolean;
  take(): void;
}

function bufferInTest(): BufferInTest {
  const flag = createLogFlag();
  const chunks: LogChunk[] = [];
  const buffer = new LogBuffer({ flag, send: (chunk) => chunks.push(chunk) });
  return {
    buffer,
    chunks,
    add(tenant, length) {
      const line = Buffer.from(`${tenant.padEnd(length - 1, '.')}\n`);
      return buffer.add(line, length, { tenant, service: `${tenant}/web` });
    },
    take: () => takeNextChunk(flag),
  };
}

test('sends every accepted line once, in order, with the Service of each line', () => {
  const step = fc.oneof(
    fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), length: fc.integer({ min: 2, max: 40_000 }) }),
    fc.constantFrom('take' as const, 'flush' as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const { buffer, chunks, add, take } = bufferInTest();
      const accepted: string[] = [];
      for (const each of steps) {
        if (each === 'take') take();
        else if (each === 'flush') buffer.flush();
        else if (add(each.tenant, each.length)) accepted.push(`${each.tenant} ${each.length}`);
      }
      take();
      buffer.flush();
      const sent = chunks.flatMap(({ bytes, runs }) => {
        assert.ok(bytes.length <= CAPACITY_BYTES);
        assert.equal(runs.at(-1)?.end, bytes.length);
        return runs.flatMap(({ service, end }, index) => {
          const lines = Buffer.from(bytes.subarray(runs[index - 1]?.end ?? 0, end))
            .toString()
            .split('\n')
            .slice(0, -1);
          return lines.map((line) => {
            assert.equal(`${line.replace(/\.+$/, '')}/web`, service);
            return `${line[0]} ${line.length + 1}`;
          });
        });
      });
      assert.deepEqual(sent, accepted);
    }),
  );
});

test('a tenant that floods the log loses its own lines, and no line of other tenants', () => {
  const { add, buffer, chunks, take } = bufferInTest();
  // The first lines are sent at once, and the main thread does not take them.
  while (chunks.length === 0) add('flood', 500);
  let dropped = 0;
  for (let count = 0; count < 10_000; count += 1) {
    if (!add('flood', 500)) dropped += 1;
    if (count % 1_000 === 0) assert.ok(add('calm', 500));
  }
  assert.ok(dropped > 9_000, `${dropped} lines of the flood are dropped`);
  for (let tenant = 0; tenant < 5; tenant += 1) assert.ok(add(`other-${tenant}`, 5_000));
  assert.equal(chunks.length, 1);
  take();
  buffer.flush();
  assert.ok((chunks[1]?.bytes.length ?? 0) < CAPACITY_BYTES * 0.75);
  assert.equal(
    Buffer.from(chunks[1]?.bytes ?? [])
      .toString()
      .split('calm').length - 1,
    10,
  );
});
