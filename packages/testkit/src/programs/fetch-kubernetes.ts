import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { kubernetesDirectory } from './cache-directory.ts';
import { catalog, kubernetesVersion } from './catalog.ts';
import { run } from './run.ts';

/** go.mod and go.sum there pin every module by version and checksum. */
const moduleDirectory = fileURLToPath(new URL('../../kubernetes/', import.meta.url));

/**
 * Builds the control plane and kubectl from their Go modules into the cache, all at once since they share most of their code.
 * Go's own cache keeps what an interrupted build has compiled. The finished folder appears by one rename. To be called under
 * the lock of the cache.
 */
export async function fetchKubernetes(progress: (text: string) => void): Promise<void> {
  const env = goEnvironment();
  await refuseOldGo(env);
  const commands = Object.values(catalog).flatMap((origin) => (origin.kind === 'kubernetes' ? [origin.module] : []));
  const home = kubernetesDirectory();
  const scratch = `${home}.building`;
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  progress(
    `Kubernetes ${kubernetesVersion}: about 200 Go modules, then 5 to 10 minutes of compiling on two cores, once`,
  );
  const counting = (verb: string, of = ''): ((line: string) => void) => counter((n) => progress(`${verb} ${n}${of}`));
  const list = await run('go', ['list', '-deps', ...commands], {
    cwd: moduleDirectory,
    env,
    onErrorLine: counting('modules downloaded:'),
  });
  const atMost = ` of at most ${list.trim().split('\n').length}`;
  await run('go', ['build', '-v', '-trimpath', '-ldflags', linkerFlags(), '-o', `${scratch}/`, ...commands], {
    cwd: moduleDirectory,
    env,
    onErrorLine: counting('packages compiled:', atMost),
  });
  rmSync(home, { recursive: true, force: true });
  renameSync(scratch, home);
}

/** What a workspace or flags of the user's would change is switched off: the build is the same everywhere. */
function goEnvironment(): NodeJS.ProcessEnv {
  const path = [process.env.PATH, '/usr/local/go/bin'].filter(Boolean).join(delimiter);
  return { ...process.env, PATH: path, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' };
}

/** In the module's folder, so that a Go since 1.21 fetches the toolchain that go.mod asks for. */
async function refuseOldGo(env: NodeJS.ProcessEnv): Promise<void> {
  const text = await run('go', ['version'], { cwd: moduleDirectory, env });
  const [, major = '0', minor = '0'] = /go(\d+)\.(\d+)/.exec(text) ?? [];
  if (Number(major) === 1 && Number(minor) < 26) throw new Error(`Go is ${major}.${minor}, and Kubernetes needs 1.26`);
}

/** Without these it would call itself v0.0.0, and clients that compare versions would refuse it. */
function linkerFlags(): string {
  const [major, minor] = kubernetesVersion.split('.');
  const set = { gitVersion: `v${kubernetesVersion}`, gitMajor: major, gitMinor: minor };
  return [
    '-s -w',
    ...Object.entries(set).map(([key, value]) => `-X k8s.io/component-base/version.${key}=${value}`),
  ].join(' ');
}

/** Says how many lines came, every ten seconds. */
function counter(say: (count: number) => void): (line: string) => void {
  let count = 0;
  let saidAt = performance.now();
  return () => {
    count++;
    if (performance.now() - saidAt < 10_000) return;
    saidAt = performance.now();
    say(count);
  };
}
