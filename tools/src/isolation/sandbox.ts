import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SkipOptions, skipFor } from '../programs/require-program.ts';
import { replaceProcess } from '../replace-process.ts';
import { type ControlGroup, joinControlGroups } from './control-groups.ts';

/** Set inside a sandbox only. */
const SANDBOX_VARIABLE = 'WEIR_SANDBOX';

type Sandbox = {
  /** Name of the sandbox and of its control groups. */
  readonly name: string;
  readonly groups: readonly ControlGroup[];
};

/** A tmpfs that disappears with the sandbox: everything that tests, kubelets and containers write is below this folder. */
const SCRATCH_FOLDER = '/run/weir';

/**
 * Moves this test file, and every process it starts, into a sandbox with its own processes, mounts and network. Changes below
 * /etc, /opt, /run, /usr/libexec and /var, and every process, disappear when the sandbox ends, even by SIGKILL. Call
 * `insideSandbox` like `insideNamespace`, but not both.
 */
export function insideSandbox(): SkipOptions {
  const sandbox = currentSandbox();
  if (sandbox !== undefined) {
    configureSandbox(sandbox);
    return {};
  }
  const requirement = requireSandbox();
  return requirement.skip ? requirement : enterSandbox();
}

/** Skips tests that need `insideSandbox` in a child process. */
export function requireSandbox(): SkipOptions {
  const support = sandboxSupport();
  return skipFor(support.kind === 'missing' ? [missingSandboxMessage(support)] : []);
}

function currentSandbox(): Sandbox | undefined {
  const text = process.env[SANDBOX_VARIABLE];
  // A test file that only inherited the variable is not the first process of its pid namespace.
  return process.pid === 1 && text !== undefined ? (JSON.parse(text) as Sandbox) : undefined;
}

function enterSandbox(): never {
  const name = `weir-${randomBytes(4).toString('hex')}`;
  // Starts before this process joins the groups, and in its own session: signals to our process group or to us do not stop the
  // cleanup.
  const cleanup = spawn(scriptPath('remove-control-groups'), [String(process.pid), name], {
    detached: true,
    stdio: 'ignore',
  });
  cleanup.unref();
  const sandbox: Sandbox = { name, groups: joinControlGroups(name) };
  const ownCommand = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return replaceProcess([scriptPath('enter-sandbox'), ...ownCommand], {
    ...process.env,
    [SANDBOX_VARIABLE]: JSON.stringify(sandbox),
    TMPDIR: join(SCRATCH_FOLDER, 'tmp'),
  });
}

function scriptPath(name: string): string {
  return fileURLToPath(new URL(`../../bin/${name}`, import.meta.url));
}

function configureSandbox({ groups }: Sandbox): void {
  mount('-t', 'tmpfs', 'tmpfs', '/run');
  mkdirSync(join(SCRATCH_FOLDER, 'tmp'), { recursive: true });
  for (const path of ['/etc', '/opt', '/usr/libexec', '/var/lib', '/var/log']) overlayWithMemory(path);
  shadowKernelSettings();
  // Programs that create control groups at the root create them below our group.
  for (const { tree, group } of groups) mount('--bind', group, tree);
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
}

/** Makes writes to a path temporary: kubelet and containerd write to some paths that no flag changes. */
function overlayWithMemory(path: string): void {
  if (!existsSync(path)) return;
  const [upper, work] = ['upper', 'work'].map((kind) => join(SCRATCH_FOLDER, kind, path));
  for (const folder of [upper, work]) mkdirSync(folder ?? '', { recursive: true });
  mount('-t', 'overlay', 'overlay', '-o', `lowerdir=${path},upperdir=${upper},workdir=${work}`, path);
}

/** A kubelet writes these kernel-wide settings unless they have the expected values, so the sandbox shows the expected values. */
function shadowKernelSettings(): void {
  const wanted = {
    'vm/overcommit_memory': '1',
    'vm/panic_on_oom': '0',
    'kernel/panic': '10',
    'kernel/panic_on_oops': '1',
    'kernel/keys/root_maxkeys': '1000000',
    'kernel/keys/root_maxbytes': '25000000',
  };
  for (const [path, value] of Object.entries(wanted)) {
    const real = join('/proc/sys', path);
    if (!existsSync(real)) continue;
    const replacement = join(SCRATCH_FOLDER, path.replaceAll('/', '.'));
    writeFileSync(replacement, `${value}\n`);
    mount('--bind', replacement, real);
  }
}

function mount(...args: string[]): void {
  execFileSync('/usr/bin/mount', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Whether a sandbox that can run kubelets can be created here, or why not. */
export type SandboxSupport =
  | { readonly kind: 'available' }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

/** A user namespace does not suffice: kubelets and containers need control groups and devices of the real root. */
export function sandboxSupport(): SandboxSupport {
  const missing = (reason: string, remedy: string): SandboxSupport => ({ kind: 'missing', reason, remedy });
  if (process.platform !== 'linux') return missing('namespaces exist only on Linux', 'run the tests on Linux');
  if (process.getuid?.() !== 0) return missing('kubelets need root', 'run as root');
  for (const tool of ['setpriv', 'unshare', 'nsenter']) {
    if (!existsSync(`/usr/bin/${tool}`)) return missing(`${tool} is not installed`, 'apt-get install util-linux');
  }
  const overlays =
    'mount -t tmpfs tmpfs /mnt && mkdir /mnt/a /mnt/b /mnt/c && mount -t overlay overlay -o lowerdir=/mnt/a,upperdir=/mnt/b,workdir=/mnt/c /mnt/a';
  const flags = ['--cgroup', '--net', '--mount', '--pid', '--fork', '--kill-child=KILL', '--mount-proc'];
  const attempt = spawnSync('/usr/bin/unshare', [...flags, 'sh', '-c', overlays], { encoding: 'utf8' });
  if (attempt.status !== 0) {
    const reason = attempt.stderr.trim() || `unshare exited with code ${attempt.status}`;
    return missing(reason, 'run where root may mount, or in a container with --privileged');
  }
  return canMakeControlGroups() ? { kind: 'available' } : missing('/sys/fs/cgroup is read-only', 'mount it writable');
}

export function missingSandboxMessage({ reason, remedy }: Extract<SandboxSupport, { kind: 'missing' }>): string {
  return `cannot create a sandbox for kubelets (${reason}); to fix: ${remedy}`;
}

/** Version 2 has one hierarchy, version 1 one hierarchy per controller. */
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
