import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { delimiter } from 'node:path';
import { fileURLToPath } from 'node:url';
import { goDirectory } from './cache-directory.ts';
import { catalog, type GoBuild, goBuilds } from './catalog.ts';
import { runCommand } from './run-command.ts';

/**
 * Builds all programs of a Go build into a folder of the cache. Uses one command, because the programs have most packages in common.
 * Go's build cache keeps the results of an interrupted build. The folder gets its name only when it is complete. The caller must hold
 * the lock of the cache.
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

/** Returns an environment without the user's Go workspace and flags, so that the build is the same on every machine. */
function goEnvironment(): NodeJS.ProcessEnv {
  const path = [process.env.PATH, '/usr/local/go/bin'].filter(Boolean).join(delimiter);
  return { ...process.env, PATH: path, CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' };
}

/** Throws if Go is too old. Runs `go` in the module's folder: Go 1.21 or later downloads the toolchain that go.mod requires. */
async function assertGoVersion(cwd: string, env: NodeJS.ProcessEnv): Promise<void> {
  const text = await runCommand('go', ['version'], { cwd, env });
  const [, major = '0', minor = '0'] = /go(\d+)\.(\d+)/.exec(text) ?? [];
  if (Number(major) === 1 && Number(minor) < 26)
    throw new Error(`Go ${major}.${minor} is too old: install Go 1.26 or later`);
}

function linkerFlags(build: GoBuild): string {
  const { version, versionVariables } = goBuilds[build];
  const variables = Object.entries(versionVariables?.(version) ?? {});
  return ['-s -w', ...variables.map(([name, value]) => `-X ${name}=${value}`)].join(' ');
}

/** Returns a function to call with each line. Reports the number of lines at most every ten seconds. */
function lineCounter(report: (count: number) => void): (line: string) => void {
  let count = 0;
  let reportedAt = performance.now();
  return () => {
    count++;
    if (performance.now() - reportedAt < 10_000) return;
    reportedAt = performance.now();
    report(count);
  };
}
