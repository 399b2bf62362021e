import { execFileSync, spawnSync } from 'node:child_process';
import { readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { programPath, requireProgram, type SkipOptions, skipFor } from '../programs/require-program.ts';
import { replaceProcess } from '../replace-process.ts';

export type NamespaceOptions = {
  /** IPv4 or IPv6 addresses for `lo`, without prefix length. */
  readonly addresses?: readonly string[];
  /** Values of kernel settings, by path below /proc/sys, such as `net/ipv4/tcp_migrate_req`. */
  readonly sysctls?: Readonly<Record<string, string | number>>;
  /** Whether the test mounts file systems. Its mounts are then invisible to other processes, and disappear with its last process. */
  readonly mounts?: boolean;
};

/** Environment variable with the original namespace. A process that has the variable and is in another namespace has already moved. */
const ORIGIN_VARIABLE = 'WEIR_OUTER_NAMESPACE';

/**
 * Moves this test file, and every process it starts, into a new network namespace in which `lo` is up and has these addresses.
 * Call `insideNamespace` before declaring any test, and pass the result to `describe` as options. If namespaces are unavailable, the
 * tests are skipped, or fail with `WEIR_REQUIRE=all`. The process replaces itself with the same command under unshare(1), and the file
 * runs again from its first line. Pid and stdio stay the same, so the test runner does not notice the replacement.
 */
export function insideNamespace(options: NamespaceOptions = {}): SkipOptions {
  const missing = requireProgram('ip');
  if (missing.skip) return missing;
  if (isInsideNamespace()) {
    configureNamespace(options);
    return {};
  }
  const support = namespaceSupport();
  if (support.kind === 'missing') {
    return skipFor([missingNamespaceMessage(support)]);
  }
  return enterNamespace(options.mounts ? [...support.command, '--mount'] : support.command);
}

function isInsideNamespace(): boolean {
  const from = process.env[ORIGIN_VARIABLE];
  return from !== undefined && from !== currentNamespace();
}

function currentNamespace(): string {
  return readlinkSync('/proc/self/ns/net');
}

function enterNamespace(command: readonly [string, ...string[]]): never {
  const ownCommand = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return replaceProcess([...command, '--', ...ownCommand], { ...process.env, [ORIGIN_VARIABLE]: currentNamespace() });
}

function configureNamespace({ addresses = [], sysctls = {} }: NamespaceOptions): void {
  const lines = ['link set lo up', ...addresses.map((address) => `address add ${address} dev lo`)];
  execFileSync(programPath('ip'), ['-batch', '-'], {
    input: `${lines.join('\n')}\n`,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  for (const [path, value] of Object.entries(sysctls)) writeFileSync(join('/proc/sys', path), String(value));
}

/** The prefix that starts a command in a new network namespace, or the reason why this machine allows no new network namespace. */
export type NamespaceSupport =
  | { readonly kind: 'available'; readonly command: readonly [string, ...string[]] }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

const UNSHARE = 'unshare';

/** Tries to create a network namespace: first directly, which needs root, then in a user namespace, which some systems forbid. */
export function namespaceSupport(): NamespaceSupport {
  if (process.platform !== 'linux') {
    return { kind: 'missing', reason: 'network namespaces exist only on Linux', remedy: 'run the tests on Linux' };
  }
  let reason = '';
  for (const flags of [['--net'], ['--user', '--map-root-user', '--net']]) {
    const attempt = spawnSync(UNSHARE, [...flags, 'true'], { encoding: 'utf8' });
    if (attempt.status === 0) return { kind: 'available', command: [UNSHARE, ...flags] };
    if ((attempt.error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
      return { kind: 'missing', reason: 'unshare is not installed', remedy: 'apt-get install util-linux' };
    }
    reason = attempt.stderr.trim() || `unshare exited with code ${attempt.status}`;
  }
  return { kind: 'missing', reason, remedy: 'run as root, or: sysctl -w kernel.unprivileged_userns_clone=1' };
}

export function missingNamespaceMessage({ reason, remedy }: Extract<NamespaceSupport, { kind: 'missing' }>): string {
  return `cannot create a network namespace (${reason}); to fix: ${remedy}`;
}
