#!/usr/bin/env node
// Starts the `weir` command. This file is plain JavaScript that Node.js 14 can parse, so that an old Node.js prints a message instead of a
// syntax error. In a checkout it runs the sources, with the Node.js of the npm package `node` if the current Node.js is too old. In an
// installation it loads the compiled program.
import { spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const MIN_NODE_VERSION = [22, 19];

const here = dirname(realpathSync(fileURLToPath(import.meta.url)));
const sources = join(here, '..', 'src', 'main.ts');
const isCheckout = existsSync(sources);
const program = isRecent(process.versions.node) ? process.execPath : isCheckout ? findCheckoutNode() : undefined;

if (program === undefined) {
  process.stderr.write(
    `weir needs Node.js ${MIN_NODE_VERSION.join('.')} or newer, but this is ${process.versions.node}; install a newer version from https://nodejs.org\n`,
  );
  process.exitCode = 2;
} else if (isCheckout) {
  runFromSource(program);
} else {
  await import('../dist/src/main.js');
}

function isRecent(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > MIN_NODE_VERSION[0] || (major === MIN_NODE_VERSION[0] && minor >= MIN_NODE_VERSION[1]);
}

/**
 * Returns the path of the launcher of the npm package `node`, a development dependency. Only the launcher knows where the libraries of this
 * Node.js are.
 */
function findCheckoutNode() {
  try {
    const binary = join(dirname(createRequire(import.meta.url).resolve('node/package.json')), '..', '.bin', 'node');
    return existsSync(binary) ? binary : undefined;
  } catch {
    return undefined;
  }
}

function runFromSource(node) {
  const args = ['--conditions=source', sources, ...process.argv.slice(2)];
  // execve keeps the process id, so signals and the terminal reach the command directly.
  if (typeof process.execve === 'function') return process.execve(node, [node, ...args], process.env);
  const child = spawn(node, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] });
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  // Forwards SIGINT only if stdin is not a terminal. A terminal sends Ctrl-C to the child as well, and a second signal would end the
  // command at once.
  process.on('SIGINT', () => process.stdin.isTTY || child.kill('SIGINT'));
  child.on('error', (error) => {
    process.stderr.write(`weir failed to start ${node}: ${error.message}; run npm ci again\n`);
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
