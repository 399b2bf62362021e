import { readFileSync } from 'node:fs';
import { catalog } from '../programs/catalog.ts';
import { isNeed, type Need, programsFor } from '../programs/needs.ts';
import type { ProgramName } from '../programs/program.ts';

export type Needs = { readonly programs: readonly ProgramName[]; readonly namespace: boolean };

/**
 * Reads the declarations in the text of the test files: `requireProgram('…')` and `insideNamespace(…)`. Nothing else is fetched,
 * so that a run over a few unit tests neither downloads nor builds.
 */
export function needsOf(files: readonly string[]): Needs {
  const programs = new Set<ProgramName>();
  let namespace = false;
  for (const file of files) {
    const text = readFileSync(file, 'utf8');
    for (const name of declared(text)) for (const program of programsFor(name)) programs.add(program);
    namespace ||= /\binsideNamespace\(/.test(text);
  }
  if (namespace) programs.add('ip');
  const inOrder = (Object.keys(catalog) as ProgramName[]).filter((name) => programs.has(name));
  return { programs: inOrder, namespace };
}

function declared(text: string): Need[] {
  const calls = [...text.matchAll(/\brequireProgram\(([^)]*)\)/g)];
  return calls
    .flatMap(([, list = '']) => [...list.matchAll(/'([\w-]+)'/g)].map(([, name = '']) => name))
    .filter(isNeed);
}
