import { execFileSync, spawnSync } from 'node:child_process';
import { readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programPath, requireProgram, type SkipOptions, skipFor } from '../programs/require-program.ts';
import { replaceProcess } from '../replace-process.ts';

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

/** How to start a command in a network namespace of its own, or why that cannot be done here. */
export type NamespaceSupport =
  | { readonly kind: 'available'; readonly command: readonly [string, ...string[]] }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

const UNSHARE = 'unshare';

/** Root makes a network namespace directly; anybody else inside a user namespace, where the system allows that. */
export function namespaceSupport(): NamespaceSupport {
  if (process.platform !== 'linux') {
    return { kind: 'missing', reason: 'network namespaces are of Linux only', remedy: 'run the tests on Linux' };
  }
  let reason = '';
  for (const flags of [['--net'], ['--user', '--map-root-user', '--net']]) {
    const attempt = spawnSync(UNSHARE, [...flags, 'true'], { encoding: 'utf8' });
    if (attempt.status === 0) return { kind: 'available', command: [UNSHARE, ...flags] };
    if ((attempt.error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
      return { kind: 'missing', reason: 'there is no unshare', remedy: 'apt-get install util-linux' };
    }
    reason = attempt.stderr.trim() || `unshare ended with exit code ${attempt.status}`;
  }
  return { kind: 'missing', reason, remedy: 'run as root, or: sysctl -w kernel.unprivileged_userns_clone=1' };
}

export function missingNamespaceMessage({ reason, remedy }: Extract<NamespaceSupport, { kind: 'missing' }>): string {
  return `no network namespace can be made (${reason}); to get one: ${remedy}`;
}
