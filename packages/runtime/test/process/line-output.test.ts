import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const MODULE = fileURLToPath(new URL('../../src/process/line-output.ts', import.meta.url));
/** Far more than a pipe holds. */
const BYTES = 4_000_000;
const SCRIPT = `
  const { standardOutput } = await import(${JSON.stringify(MODULE)});
  const written = standardOutput().write(Buffer.alloc(${BYTES}, 'a')).then(() => console.error('written'));
  standardOutput().write(Buffer.from('b'));
  console.error('not blocked');
  await written;
`;

test('does not block while nobody reads the pipe, and writes everything in order', async () => {
  const child = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', SCRIPT]);
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  await once(child.stderr, 'data');
  assert.equal(errors, 'not blocked\n');
  const chunks: Buffer[] = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  await once(child, 'close');
  assert.equal(errors, 'not blocked\nwritten\n');
  const text = Buffer.concat(chunks).toString();
  assert.equal(text.length, BYTES + 1);
  assert.ok(text.endsWith('ab'));
});

test('discards lines when the reader of the pipe has left', async () => {
  const child = spawn(process.execPath, ['--conditions=source', '--input-type=module', '-e', SCRIPT], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    errors += text;
  });
  const [code] = await once(child, 'close');
  assert.deepEqual([code, errors], [0, 'not blocked\nwritten\n']);
});
