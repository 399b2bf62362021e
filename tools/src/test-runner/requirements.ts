import { readFileSync } from 'node:fs';
import { missingNamespaceMessage, namespaceSupport } from '../isolation/network-namespace.ts';
import { missingSandboxMessage, sandboxSupport } from '../isolation/sandbox.ts';
import { catalog, type ProgramLookup, type ProgramName } from '../programs/catalog.ts';
import { isProgramOrSet, missingProgramMessage, type ProgramOrSet, programsFor } from '../programs/require-program.ts';

/** Where a test file moves to before its tests begin. */
export type Isolation = 'namespace' | 'sandbox';

export type TestFileRequirements = {
  readonly programs: readonly ProgramName[];
  readonly isolation: Isolation | 'none';
};

/**
 * What a test file declares in its text: `requireProgram('…')`, `insideNamespace(…)`, `insideSandbox()`. Nothing else is fetched,
 * so that a run over a few unit tests neither downloads nor builds.
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

/** The programs that are worth fetching: not those of files that cannot run here whatever is fetched. */
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

/** Of the quarters that test files want, those that cannot be had here, each with the line that says why. */
export function unavailableIsolation(needs: readonly TestFileRequirements[]): ReadonlyMap<Isolation, string> {
  const wanted = new Set(needs.map(({ isolation }) => isolation));
  const missing = new Map<Isolation, string>();
  const namespace = wanted.has('namespace') ? namespaceSupport() : undefined;
  if (namespace?.kind === 'missing') missing.set('namespace', missingNamespaceMessage(namespace));
  const sandbox = wanted.has('sandbox') ? sandboxSupport() : undefined;
  if (sandbox?.kind === 'missing') missing.set('sandbox', missingSandboxMessage(sandbox));
  return missing;
}

/** One line for each thing that is wanted and cannot be had: what, why, and the line that gets it. */
export function skipReasons(wanted: { programs: readonly ProgramLookup[]; quarters: readonly string[] }): string[] {
  return [
    ...wanted.programs.filter((program) => program.kind === 'missing').map(missingProgramMessage),
    ...wanted.quarters,
  ];
}
