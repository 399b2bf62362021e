import { spawnSync } from 'node:child_process';

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
