import { readFileSync } from 'node:fs';
import { catalog } from '../programs/catalog.ts';
import { isNeed, type Need, programsFor } from '../programs/needs.ts';
import type { ProgramName } from '../programs/program.ts';

/** Where a test file moves to before its tests begin. */
export type Quarters = 'namespace' | 'machine';

export type Needs = { readonly programs: readonly ProgramName[]; readonly quarters: Quarters | 'none' };

/**
 * What a test file declares in its text: `requireProgram('…')`, `insideNamespace(…)`, `insideMachine()`. Nothing else is fetched,
 * so that a run over a few unit tests neither downloads nor builds.
 */
export function needsOf(file: string): Needs {
  const text = readFileSync(file, 'utf8');
  const programs = declaredIn(text).flatMap(programsFor);
  const quarters = /\b(?:inside|require)Machine\(/.test(text)
    ? 'machine'
    : /\binsideNamespace\(/.test(text)
      ? 'namespace'
      : 'none';
  return { programs: quarters === 'namespace' ? [...programs, 'ip'] : programs, quarters };
}

/** The programs that are worth fetching: not those of files that cannot run here whatever is fetched. */
export function wantedPrograms(needs: readonly Needs[], missing: ReadonlySet<Quarters>): ProgramName[] {
  const cannotRun = ({ quarters }: Needs): boolean => quarters !== 'none' && missing.has(quarters);
  const wanted = new Set(needs.flatMap((each) => (cannotRun(each) ? [] : each.programs)));
  return (Object.keys(catalog) as ProgramName[]).filter((name) => wanted.has(name));
}

function declaredIn(text: string): Need[] {
  const calls = [...text.matchAll(/\brequireProgram\(([^)]*)\)/g)];
  return calls
    .flatMap(([, list = '']) => [...list.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name))
    .filter(isNeed);
}
