import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type SkipOptions, skipFor } from '../programs/require-program.ts';
import { replaceProcess } from '../replace-process.ts';
import { type ControlGroup, joinControlGroups } from './control-groups.ts';

/** Set in there only. */
const SANDBOX_VARIABLE = 'WEIR_SANDBOX';

type Sandbox = {
  /** Also of its control groups. */
  readonly name: string;
  readonly groups: readonly ControlGroup[];
};

/** Memory that is gone with the machine: whatever tests, kubelets and containers write is here. */
const SCRATCH_FOLDER = '/run/weir';

/**
 * Moves this test file, with everything that it starts, into a machine of its own within this one: processes, mounts and network.
 * Whatever it changes below /etc, /opt, /run, /usr/libexec and /var is gone when it ends, and so is every process, however it
 * ends. To be called as `insideNamespace` is, and not together with it.
 */
export function insideSandbox(): SkipOptions {
  const machine = currentSandbox();
  if (machine !== undefined) {
    configureSandbox(machine);
    return {};
  }
  const requirement = requireSandbox();
  return requirement.skip ? requirement : enterSandbox();
}

/** The same for tests that stay outside. */
export function requireSandbox(): SkipOptions {
  const answer = sandboxSupport();
  return skipFor(answer.kind === 'missing' ? [missingSandboxMessage(answer)] : []);
}

function currentSandbox(): Sandbox | undefined {
  const text = process.env[SANDBOX_VARIABLE];
  // its first process, which a test file that merely inherited the variable is not
  return process.pid === 1 && text !== undefined ? (JSON.parse(text) as Sandbox) : undefined;
}

function enterSandbox(): never {
  const name = `weir-${randomBytes(4).toString('hex')}`;
  // before we join them, and in a session of its own: no signal to our group reaches it, nor SIGKILL to us
  const keeper = spawn(scriptPath('remove-control-groups'), [String(process.pid), name], {
    detached: true,
    stdio: 'ignore',
  });
  keeper.unref();
  const machine: Sandbox = { name, groups: joinControlGroups(name) };
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return replaceProcess([scriptPath('enter-sandbox'), ...again], {
    ...process.env,
    [SANDBOX_VARIABLE]: JSON.stringify(machine),
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
  // whatever makes control groups at the root makes them below ours
  for (const { tree, group } of groups) mount('--bind', group, tree);
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
}

/** What is there is seen, what is written is not kept: kubelets and containerd have paths of theirs that no flag changes. */
function overlayWithMemory(path: string): void {
  if (!existsSync(path)) return;
  const [upper, work] = ['upper', 'work'].map((kind) => join(SCRATCH_FOLDER, kind, path));
  for (const folder of [upper, work]) mkdirSync(folder ?? '', { recursive: true });
  mount('-t', 'overlay', 'overlay', '-o', `lowerdir=${path},upperdir=${upper},workdir=${work}`, path);
}

/** A kubelet sets these for the whole kernel, unless it finds them as it wants them; so it finds them so. */
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
    const double = join(SCRATCH_FOLDER, path.replaceAll('/', '.'));
    writeFileSync(double, `${value}\n`);
    mount('--bind', double, real);
  }
}

function mount(...args: string[]): void {
  execFileSync('/usr/bin/mount', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}

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
