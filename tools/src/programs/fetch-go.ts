import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { goDirectory } from './cache-directory.ts';
import { catalog, type GoBuild, goBuilds } from './catalog.ts';
import { runCommand } from './run-command.ts';

/**
 * Builds all programs of a build from their Go modules into the cache, at once since they share most of their code. Go's own cache
 * keeps what an interrupted build has compiled. The finished folder appears by one rename. To be called under the lock of the cache.
 */
export async function fetchGo(build: GoBuild, progress: (text: string) => void): Promise<void> {
  const { folder, version, durationHint, tags = [], extraPackages = [] } = goBuilds[build];
  const cwd = fileURLToPath(new URL(`../../go/${folder}/`, import.meta.url));
  const env = goEnvironment();
  await assertGoVersion(cwd, env);
  const inCatalog = Object.values(catalog).flatMap((origin) =>
    origin.kind === 'go' && origin.build === build ? [origin.module] : [],
  );
  const commands = [`-tags=${tags.join(',')}`, ...inCatalog, ...extraPackages];
  const home = goDirectory(build);
  const scratch = `${home}.building`;
  rmSync(scratch, { recursive: true, force: true });
  mkdirSync(scratch, { recursive: true });
  progress(`${build} ${version}: ${durationHint}`);
  const counting = (verb: string, of = ''): ((line: string) => void) =>
    lineCounter((n) => progress(`${verb} ${n}${of}`));
  const list = await runCommand('go', ['list', '-deps', ...commands], {
    cwd,
    env,
    onErrorLine: counting('modules downloaded:'),
  });
  const atMost = ` of at most ${list.trim().split('\n').length}`;
  await runCommand(
    'go',
    ['build', '-v', '-trimpath', '-ldflags', linkerFlags(build), '-o', `${scratch}/`, ...commands],
    {
      cwd,
      env,
      onErrorLine: counting('packages compiled:', atMost),
    },
  );
  rmSync(home, { recursive: true, force: true });
  renameSync(scratch, home);
}

/** What a workspace or flags of the user's would change is switched off: the build is the same everywhere. */
function goEnvironment(): NodeJS.ProcessEnv {
  const path = [process.env.PATH, '/usr/local/go/bin'].filter(Boolean).join(delimiter);
  return { ...process.env, PATH: path, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' };
}

/** In the module's folder, so that a Go since 1.21 fetches the toolchain that go.mod asks for. */
async function assertGoVersion(cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const text = await runCommand('go', ['version'], { cwd, env });
  const [, major = '0', minor = '0'] = /go(\d+)\.(\d+)/.exec(text) ?? [];
  if (Number(major) === 1 && Number(minor) < 26)
    throw new Error(`Go is ${major}.${minor}, and what is built here needs 1.26`);
}

function linkerFlags(build: GoBuild): string {
  const { version, versionVariables } = goBuilds[build];
  const variables = Object.entries(versionVariables?.(version) ?? {});
  return ['-s -w', ...variables.map(([name, value]) => `-X ${name}=${value}`)].join(' ');
}

/** Says how many lines came, every ten seconds. */
function lineCounter(say: (count: number) => void): (line: string) => void {
  let count = 0;
  let saidAt = performance.now();
  return () => {
    count++;
    if (performance.now() - saidAt < 10_000) return;
    saidAt = performance.now();
    say(count);
  };
}
