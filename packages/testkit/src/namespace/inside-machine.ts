import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { replaceProcess } from '../become.ts';
import { type SkipOptions, skipFor } from '../programs/require-program.ts';
import { type ControlGroup, joinControlGroups } from './control-groups.ts';
import { missingSandboxMessage, sandboxSupport } from './find-machine.ts';

/** Set in there only. */
const SANDBOX_VARIABLE = 'WEIR_MACHINE';

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
  return replaceProcess([scriptPath('own-machine'), ...again], {
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
