import { readFileSync } from 'node:fs';
import { catalog } from '../programs/catalog.ts';
import { isProgramOrSet, type ProgramOrSet, programsFor } from '../programs/needs.ts';
import type { ProgramName } from '../programs/program.ts';

/** Where a test file moves to before its tests begin. */
export type Isolation = 'namespace' | 'machine';

export type TestFileRequirements = {
  readonly programs: readonly ProgramName[];
  readonly isolation: Isolation | 'none';
};

/**
 * What a test file declares in its text: `requireProgram('…')`, `insideNamespace(…)`, `insideMachine()`. Nothing else is fetched,
 * so that a run over a few unit tests neither downloads nor builds.
 */
export function requirementsOf(file: string): TestFileRequirements {
  const text = readFileSync(file, 'utf8');
  const programs = declaredPrograms(text).flatMap(programsFor);
  const isolation = /\b(?:inside|require)Machine\(/.test(text)
    ? 'machine'
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
