import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';

/** Whether a machine within this one can be made, in which kubelets run; or why not. */
export type SandboxSupport =
  | { readonly kind: 'available' }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

/** A user namespace is not enough: kubelets and containers need control groups and devices of the real root. */
export function sandboxSupport(): SandboxSupport {
  const missing = (reason: string, remedy: string): SandboxSupport => ({ kind: 'missing', reason, remedy });
  if (process.platform !== 'linux') return missing('namespaces are of Linux only', 'run the tests on Linux');
  if (process.getuid?.() !== 0) return missing('kubelets need root', 'run as root');
  for (const tool of ['setpriv', 'unshare', 'nsenter']) {
    if (!existsSync(`/usr/bin/${tool}`)) return missing(`there is no ${tool}`, 'apt-get install util-linux');
  }
  const overlays =
    'mount -t tmpfs tmpfs /mnt && mkdir /mnt/a /mnt/b /mnt/c && mount -t overlay overlay -o lowerdir=/mnt/a,upperdir=/mnt/b,workdir=/mnt/c /mnt/a';
  const flags = ['--cgroup', '--net', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
  const attempt = spawnSync('/usr/bin/unshare', [...flags, 'sh', '-c', overlays], { encoding: 'utf8' });
  if (attempt.status !== 0) {
    const reason = attempt.stderr.trim() || `unshare ended with exit code ${attempt.status}`;
    return missing(reason, 'run where root may mount, or in a container with --privileged');
  }
  return canMakeControlGroups() ? { kind: 'available' } : missing('/sys/fs/cgroup is read-only', 'mount it writable');
}

export function missingSandboxMessage({ reason, remedy }: Extract<SandboxSupport, { kind: 'missing' }>): string {
  return `no machine for kubelets can be made within this one (${reason}); to get one: ${remedy}`;
}

/** Of version 2 they are one tree, of version 1 one for each controller. */
function canMakeControlGroups(): boolean {
  return ['/sys/fs/cgroup/cgroup.procs', '/sys/fs/cgroup/memory/cgroup.procs'].some((path) => {
    try {
      accessSync(path, constants.W_OK);
      return true;
    } catch {
      return false;
    }
  });
}
