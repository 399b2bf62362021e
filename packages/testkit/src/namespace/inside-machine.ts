import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { become } from '../become.ts';
import { leaveOut, type Requirement } from '../programs/require-program.ts';
import { type ControlGroup, joinControlGroups } from './control-groups.ts';
import { findMachine, machineSentence } from './find-machine.ts';

/** Set in there only. */
const variable = 'WEIR_MACHINE';

type Machine = {
  /** Also of its control groups. */
  readonly name: string;
  readonly groups: readonly ControlGroup[];
};

/** Memory that is gone with the machine: whatever tests, kubelets and containers write is here. */
const scratch = '/run/weir';

/**
 * Moves this test file, with everything that it starts, into a machine of its own within this one: processes, mounts and network.
 * Whatever it changes below /etc, /opt, /run, /usr/libexec and /var is gone when it ends, and so is every process, however it
 * ends. To be called as `insideNamespace` is, and not together with it.
 */
export function insideMachine(): Requirement {
  const machine = machineAround();
  if (machine !== undefined) {
    furnish(machine);
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

function machineAround(): Machine | undefined {
  const text = process.env[variable];
  // its first process, which a test file that merely inherited the variable is not
  return process.pid === 1 && text !== undefined ? (JSON.parse(text) as Machine) : undefined;
}

function enter(): never {
  const name = `weir-${randomBytes(4).toString('hex')}`;
  // before we join them, and in a session of its own: no signal to our group reaches it, nor SIGKILL to us
  const keeper = spawn(script('remove-control-groups'), [String(process.pid), name], {
    detached: true,
    stdio: 'ignore',
  });
  keeper.unref();
  const machine: Machine = { name, groups: joinControlGroups(name) };
  const again = [process.execPath, ...process.execArgv, ...process.argv.slice(1)];
  return become([script('own-machine'), ...again], {
    ...process.env,
    [variable]: JSON.stringify(machine),
    TMPDIR: join(scratch, 'tmp'),
  });
}

function script(name: string): string {
  return fileURLToPath(new URL(`../../bin/${name}`, import.meta.url));
}

function furnish({ groups }: Machine): void {
  mount('-t', 'tmpfs', 'tmpfs', '/run');
  mkdirSync(join(scratch, 'tmp'), { recursive: true });
  for (const path of ['/etc', '/opt', '/usr/libexec', '/var/lib', '/var/log']) coverByMemory(path);
  hideKernelTunables();
  // whatever makes control groups at the root makes them below ours
  for (const { tree, group } of groups) mount('--bind', group, tree);
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
