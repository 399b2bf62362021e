import { readFileSync } from 'node:fs';
import { catalog } from '../programs/catalog.ts';
import { isNeed, type Need, programsFor } from '../programs/needs.ts';
import type { ProgramName } from '../programs/program.ts';

export type Needs = { readonly programs: readonly ProgramName[]; readonly namespace: boolean };

/**
 * What a test file declares in its text: `requireProgram('…')` and `insideNamespace(…)`. Nothing else is fetched, so that a run
 * over a few unit tests neither downloads nor builds.
 */
export function needsOf(file: string): Needs {
  const text = readFileSync(file, 'utf8');
  const namespace = /\binsideNamespace\(/.test(text);
  const programs = declaredIn(text).flatMap(programsFor);
  return { programs: namespace ? [...programs, 'ip'] : programs, namespace };
}

/** The programs that are worth fetching: not those of files that cannot run here whatever is fetched. */
export function wantedPrograms(needs: readonly Needs[], canMakeNamespaces: boolean): ProgramName[] {
  const wanted = new Set(needs.flatMap(({ programs, namespace }) => (namespace && !canMakeNamespaces ? [] : programs)));
  return (Object.keys(catalog) as ProgramName[]).filter((name) => wanted.has(name));
}

function declaredIn(text: string): Need[] {
  const calls = [...text.matchAll(/\brequireProgram\(([^)]*)\)/g)];
  return calls
    .flatMap(([, list = '']) => [...list.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name))
    .filter(isNeed);
}
