import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { become } from '../become.ts';
import { leaveOut, type Requirement } from '../programs/require-program.ts';
import { findMachine, machineSentence, ownMachine } from './find-machine.ts';

/** The name of the machine, which all that it leaves in the world outside begins with. Set in there only. */
const name = 'WEIR_MACHINE';

/** Memory that is gone with the machine: whatever tests, kubelets and containers write is here. */
const scratch = '/run/weir';

/**
 * Moves this test file, with everything that it starts, into a machine of its own within this one: processes, mounts and network.
 * Whatever it changes below /etc, /opt, /run, /usr/libexec and /var is gone when it ends, and so is every process, however it
 * ends. To be called as `insideNamespace` is, and not together with it.
 */
export function insideMachine(): Requirement {
  if (machineName() !== undefined) {
    furnish();
    return {};
  }
  const requirement = requireMachine();
  return requirement.skip ? requirement : enter();
}

/** The same for tests that stay outside. */
export function requireMachine(): Requirement {
  const answer = findMachine();
  return leaveOut(answer.kind === 'missing' ? [machineSentence(answer)] : []);
}

/** Undefined outside. */
export function machineName(): string | undefined {
  // its first process, which a test file that merely inherited the variable is not
  return process.pid === 1 ? process.env[name] : undefined;
}

function enter(): never {
  const label = `weir-${randomBytes(4).toString('hex')}`;
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return become([ownMachine, label, ...again], { ...process.env, [name]: label, TMPDIR: join(scratch, 'tmp') });
}

function furnish(): void {
  mount('-t', 'tmpfs', 'tmpfs', '/run');
  mkdirSync(join(scratch, 'tmp'), { recursive: true });
  for (const path of ['/etc', '/opt', '/usr/libexec', '/var/lib', '/var/log']) coverByMemory(path);
  hideKernelTunables();
  writeFileSync('/proc/sys/net/ipv4/ip_forward', '1');
}

/** What is there is seen, what is written is not kept: kubelets and containerd have paths of theirs that no flag changes. */
function coverByMemory(path: string): void {
  if (!existsSync(path)) return;
  const [upper, work] = ['upper', 'work'].map((kind) => join(scratch, kind, path));
  for (const folder of [upper, work]) mkdirSync(folder ?? '', { recursive: true });
  mount('-t', 'overlay', 'overlay', '-o', `lowerdir=${path},upperdir=${upper},workdir=${work}`, path);
}

/** A kubelet sets these for the whole kernel, unless it finds them as it wants them; so it finds them so. */
function hideKernelTunables(): void {
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
    const double = join(scratch, path.replaceAll('/', '.'));
    writeFileSync(double, `${value}\n`);
    mount('--bind', double, real);
  }
}

function mount(...args: string[]): void {
  execFileSync('/usr/bin/mount', args, { stdio: ['ignore', 'ignore', 'inherit'] });
}
