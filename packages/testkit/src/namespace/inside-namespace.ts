import { execFileSync } from 'node:child_process';
import { readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { replaceProcess } from '../become.ts';
import { programPath, requireProgram, type SkipOptions, skipFor } from '../programs/require-program.ts';
import { missingNamespaceMessage, namespaceSupport } from './find-namespace.ts';

export type NamespaceOptions = {
  /** Put on `lo`, IPv4 or IPv6, without a prefix length: each address alone. */
  readonly addresses?: readonly string[];
  /** By path below /proc/sys, such as `net/ipv4/tcp_migrate_req`. */
  readonly sysctls?: Readonly<Record<string, string | number>>;
};

/** Holds the namespace that we came from: whoever finds itself elsewhere has arrived. */
const ORIGIN_VARIABLE = 'WEIR_OUTER_NAMESPACE';

/**
 * Moves this test file, with everything that it starts, into a network namespace of its own in which `lo` is up and has these
 * addresses. To be called first in the file, before any test is declared; what it returns goes to `describe` as options, since
 * where namespaces cannot be made the tests are skipped (or fail, under `WEIR_REQUIRE=all`).
 *
 * The process replaces itself by the same command under unshare(1) and runs the file again from its first line. It keeps pid,
 * stdio and environment, so that the test runner that started it notices nothing.
 */
export function insideNamespace(options: NamespaceOptions = {}): SkipOptions {
  const missing = requireProgram('ip');
  if (missing.skip) return missing;
  if (isInsideNamespace()) {
    configureNamespace(options);
    return {};
  }
  const answer = namespaceSupport();
  if (answer.kind === 'missing') {
    return skipFor([missingNamespaceMessage(answer)]);
  }
  return enterNamespace(answer.command);
}

function isInsideNamespace(): boolean {
  const from = process.env[ORIGIN_VARIABLE];
  return from !== undefined && from !== currentNamespace();
}

function currentNamespace(): string {
  return readlinkSync('/proc/self/ns/net');
}

function enterNamespace(command: readonly [string, ...string[]]): never {
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return replaceProcess([...command, '--', ...again], { ...process.env, [ORIGIN_VARIABLE]: currentNamespace() });
}

function configureNamespace({ addresses = [], sysctls = {} }: NamespaceOptions): void {
  const lines = ['link set lo up', ...addresses.map((address) => `address add ${address} dev lo`)];
  execFileSync(programPath('ip'), ['-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  for (const [path, value] of Object.entries(sysctls)) writeFileSync(join('/proc/sys', path), String(value));
}
