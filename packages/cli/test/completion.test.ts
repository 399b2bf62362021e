import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import { runWeirInProcess } from './fixtures/weir-in-process.ts';

/** Returns the words that bash would offer after `words`. */
async function completed(...words: readonly string[]): Promise<string[]> {
  const { code, stdout } = await runWeirInProcess(['completion', 'bash']);
  assert.equal(code, 0);
  const script = `${stdout}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')})\nCOMP_CWORD=${words.length - 1}\n_weir\nprintf '%s\\n' "\${COMPREPLY[@]}"`;
  return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim().split('\n');
}

test('completion for bash offers commands, kinds and options', async () => {
  assert.deepEqual(await completed('weir', 't'), ['translate', 'top']);
  assert.deepEqual(await completed('weir', 'get', 'pro'), ['proxies', 'problems']);
  assert.deepEqual(await completed('weir', 'get', 'services', '--name'), ['--namespace']);
  assert.deepEqual(await completed('weir', 'completion', 'f'), ['fish']);
});

test('completion for zsh and fish names every command', async () => {
  for (const shell of ['zsh', 'fish']) {
    const { code, stdout } = await runWeirInProcess(['completion', shell]);
    assert.equal(code, 0);
    for (const command of ['standalone', 'get', 'version', 'doctor']) assert.ok(stdout.includes(command), shell);
  }
});
