import { readFileSync } from 'node:fs';
import { missingNamespaceMessage, namespaceSupport } from '../isolation/network-namespace.ts';
import { missingSandboxMessage, sandboxSupport } from '../isolation/sandbox.ts';
import { catalog, type ProgramLookup, type ProgramName } from '../programs/catalog.ts';
import { isProgramOrSet, missingProgramMessage, type ProgramOrSet, programsFor } from '../programs/require-program.ts';

/** What isolates the tests of a file: `insideNamespace` or `insideSandbox`. */
export type Isolation = 'namespace' | 'sandbox';

export type TestFileRequirements = {
  readonly programs: readonly ProgramName[];
  readonly isolation: Isolation | 'none';
};

/**
 * Reads the requirements of a test file from the calls in its text: `requireProgram('…')`, `insideNamespace(…)`, `insideSandbox()`.
 * `npm test` fetches only the required programs, so a run of a few unit tests does not download or build anything.
 */
export function requirementsOf(file: string): TestFileRequirements {
  const text = readFileSync(file, 'utf8');
  const programs = declaredPrograms(text).flatMap(programsFor);
  const isolation = /\b(?:inside|require)Sandbox\(/.test(text)
    ? 'sandbox'
    : /\binsideNamespace\(/.test(text)
      ? 'namespace'
      : 'none';
  return { programs: isolation === 'namespace' ? [...programs, 'ip'] : programs, isolation };
}

/** Returns the programs to fetch. Leaves out programs that only files with an unavailable isolation need. */
export function programsToProvide(
  needs: readonly TestFileRequirements[],
  missing: ReadonlySet<Isolation>,
): ProgramName[] {
  const cannotRun = ({ isolation }: TestFileRequirements): boolean => isolation !== 'none' && missing.has(isolation);
  const wanted = new Set(needs.flatMap((each) => (cannotRun(each) ? [] : each.programs)));
  return (Object.keys(catalog) as ProgramName[]).filter((name) => wanted.has(name));
}

function declaredPrograms(text: string): ProgramOrSet[] {
  const calls = [...text.matchAll(/\brequireProgram\(([^)]*)\)/g)];
  return calls
    .flatMap(([, list = '']) => [...list.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name))
    .filter(isProgramOrSet);
}

/** Returns the required kinds of isolation that are unavailable on this machine, each with the reason. */
export function unavailableIsolation(needs: readonly TestFileRequirements[]): ReadonlyMap<Isolation, string> {
  const wanted = new Set(needs.map(({ isolation }) => isolation));
  const missing = new Map<Isolation, string>();
  const namespace = wanted.has('namespace') ? namespaceSupport() : undefined;
  if (namespace?.kind === 'missing') missing.set('namespace', missingNamespaceMessage(namespace));
  const sandbox = wanted.has('sandbox') ? sandboxSupport() : undefined;
  if (sandbox?.kind === 'missing') missing.set('sandbox', missingSandboxMessage(sandbox));
  return missing;
}

/** Returns one line for each missing program or isolation: name, reason and remedy. */
export function skipReasons(missing: { programs: readonly ProgramLookup[]; isolation: readonly string[] }): string[] {
  return [
    ...missing.programs.filter((program) => program.kind === 'missing').map(missingProgramMessage),
    ...missing.isolation,
  ];
}
