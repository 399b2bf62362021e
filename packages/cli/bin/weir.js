#!/usr/bin/env node
// Plain JavaScript that every Node since 14 can read, so that an old one gets a sentence instead of a syntax error.
// In a checkout it runs the sources, on the Node that the checkout brings along when the one that started it is too old;
// installed it loads the compiled program.
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OLDEST = [22, 19];

const here = dirname(realpathSync(fileURLToPath(import.meta.url)));
const sources = join(here, '..', 'src', 'main.ts');
const isCheckout = existsSync(sources);
const program = isRecent(process.versions.node) ? process.execPath : isCheckout ? nodeOfCheckout() : undefined;

if (program === undefined) {
  process.stderr.write(
    `weir needs Node.js ${OLDEST.join('.')} or newer and this is ${process.versions.node}; install a newer one from https://nodejs.org\n`,
  );
  process.exitCode = 2;
} else if (isCheckout) {
  runSources(program);
} else {
  await import('../dist/src/main.js');
}

function isRecent(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

/** That of the npm package `node`, a development dependency; by its launcher, which knows where its libraries are. */
function nodeOfCheckout() {
  try {
    const binary = join(dirname(createRequire(import.meta.url).resolve('node/package.json')), '..', '.bin', 'node');
    return existsSync(binary) ? binary : undefined;
  } catch {
    return undefined;
  }
}

function runSources(node) {
  const args = ['--conditions=source', sources, ...process.argv.slice(2)];
  // The same process: whoever started it can signal it, and nothing stands between it and the terminal.
  if (typeof process.execve === 'function') return process.execve(node, [node, ...args], process.env);
  const child = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // Ctrl-C in a terminal reaches the child by itself; a second one would mean "at once".
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  child.on('error', (error) => {
    process.stderr.write(`weir cannot start ${node}: ${error.message}; run npm ci again\n`);
    process.exitCode = 2;
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exitCode = code;
    else {
      process.removeAllListeners(signal);
      process.kill(process.pid, signal);
    }
  });
}
