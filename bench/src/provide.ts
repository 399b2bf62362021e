import { type Program, type ProgramName, providePrograms } from '@weir/testkit';
import type { ChosenName } from './subjects/subject-name.ts';

const programOf: Readonly<Partial<Record<ChosenName, ProgramName>>> = {
  haproxy: 'haproxy',
  nginx: 'nginx-stream',
  envoy: 'envoy',
};

export type Provided = {
  readonly versions: Readonly<Record<string, string>>;
  readonly subjects: readonly ChosenName[];
  readonly leftOut: readonly string[];
};

/** Fetches what is missing. What cannot be had ends the run when the load needs it or it was asked for by name. */
export async function provideFor(
  { subjects, isByDefault }: { readonly subjects: readonly ChosenName[]; readonly isByDefault: boolean },
  load: readonly ProgramName[],
): Promise<Provided> {
  const peers = subjects.flatMap((name) => programOf[name] ?? []);
  return decide(await providePrograms([...load, ...peers]), { subjects, mayMiss: isByDefault ? peers : [] });
}

export function decide(
  programs: readonly Program[],
  { subjects, mayMiss }: { readonly subjects: readonly ChosenName[]; readonly mayMiss: readonly ProgramName[] },
): Provided {
  const missing = programs.filter((program) => program.kind === 'missing');
  const sentences = missing.map(({ name, reason, remedy }) => `${name} is missing (${reason}); to get it: ${remedy}`);
  const fatal = missing.findIndex(({ name }) => !mayMiss.includes(name));
  if (fatal >= 0) throw new Error(sentences[fatal]);
  const gone = new Set<ProgramName>(missing.map(({ name }) => name));
  const isGone = (name: ChosenName): boolean => {
    const program = programOf[name];
    return program !== undefined && gone.has(program);
  };
  return {
    versions: Object.fromEntries(
      programs.flatMap((program) => (program.kind === 'available' ? [[program.name, program.version]] : [])),
    ),
    subjects: subjects.filter((name) => !isGone(name)),
    leftOut: missing.map(({ name, reason, remedy }) => `${name}, since ${reason}; to get it: ${remedy}`),
  };
}
