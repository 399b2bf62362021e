import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SkipOptions, skipFor } from '../programs/require-program.ts';
import { replaceProcess } from '../replace-process.ts';
import { type ControlGroup, joinControlGroups } from './control-groups.ts';

/** Environment variable that is set only inside a sandbox, with the `Sandbox` as JSON. */
const SANDBOX_VARIABLE = 'WEIR_SANDBOX';

type Sandbox = {
  /** Name of the sandbox and of its control groups. */
  readonly name: string;
  readonly groups: readonly ControlGroup[];
};

/** Folder for everything that tests, kubelets and containers write. It is in a tmpfs that disappears with the sandbox. */
const SCRATCH_FOLDER = '/run/weir';

/**
 * Moves this test file, and every process it starts, into a sandbox with its own processes, mounts and network. When the sandbox ends,
 * even by SIGKILL, its processes end, and all changes below /etc, /opt, /run, /usr/libexec, /var/lib and /var/log disappear. Call
 * `insideSandbox` in the way that is described at `insideNamespace`. A test file must call only one of the two functions.
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

/** Returns options that skip tests if no sandbox is available. For tests whose child process calls `insideSandbox`. */
export function requireSandbox(): SkipOptions {
  const support = sandboxSupport();
  return skipFor(support.kind === 'missing' ? [missingSandboxMessage(support)] : []);
}

function currentSandbox(): Sandbox | undefined {
  const text = process.env[SANDBOX_VARIABLE];
  // A test file in the sandbox has pid 1. A process with another pid has only inherited the variable.
  return process.pid === 1 && text !== undefined ? (JSON.parse(text) as Sandbox) : undefined;
}

function enterSandbox(): never {
  const name = `weir-${randomBytes(4).toString('hex')}`;
  // Starts before this process joins the groups, so that the cleanup is not in the groups that it removes. Starts in its own session,
  // so that signals to the process group of this process do not end the cleanup.
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
  // Shows the group of the sandbox as the root, so that programs in the sandbox create their groups below this group.
  for (const { tree, group } of groups) mount('--bind', group, tree);
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
}

/** Makes all changes below a path temporary. Needed for folders in which kubelet and containerd write files that no flag can move. */
function overlayWithMemory(path: string): void {
  if (!existsSync(path)) return;
  const [upper, work] = ['upper', 'work'].map((kind) => join(SCRATCH_FOLDER, kind, path));
  for (const folder of [upper, work]) mkdirSync(folder ?? '', { recursive: true });
  mount('-t', 'overlay', 'overlay', '-o', `lowerdir=${path},upperdir=${upper},workdir=${work}`, path);
}

/** Hides kernel settings that kubelet would change for the whole machine. The sandbox shows the values that kubelet expects. */
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

/** Whether this machine allows a sandbox that can run kubelets, and otherwise the reason. */
export type SandboxSupport =
  | { readonly kind: 'available' }
  | { readonly kind: 'missing'; readonly reason: string; readonly remedy: string };

/** Tries to create a sandbox. Needs root: in a user namespace, kubelets and containers would lack control groups and devices. */
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

/**
 * Reports whether this process can create control groups, because either the hierarchy of version 2 or the memory hierarchy of version 1
 * is writable.
 */
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
