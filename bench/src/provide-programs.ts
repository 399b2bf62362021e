import { type ProgramLookup, type ProgramName, providePrograms } from '@weir/tools';
import type { SelectableSubjectName } from './subjects/subject.ts';

const PROGRAM_BY_SUBJECT: Readonly<Partial<Record<SelectableSubjectName, ProgramName>>> = {
  haproxy: 'haproxy',
  nginx: 'nginx-stream',
  envoy: 'envoy',
};

export type AvailablePrograms = {
  readonly versions: Readonly<Record<string, string>>;
  readonly subjects: readonly SelectableSubjectName[];
  readonly leftOut: readonly string[];
};

/** Downloads missing programs. Throws if a program in `load`, or the program of a subject that the user selected, is unavailable. */
export async function provideSubjects(
  {
    subjects,
    usesDefaultSubjects,
  }: { readonly subjects: readonly SelectableSubjectName[]; readonly usesDefaultSubjects: boolean },
  load: readonly ProgramName[],
): Promise<AvailablePrograms> {
  const peers = subjects.flatMap((name) => PROGRAM_BY_SUBJECT[name] ?? []);
  return selectAvailable(await providePrograms([...load, ...peers]), {
    subjects,
    optional: usesDefaultSubjects ? peers : [],
  });
}

export function selectAvailable(
  programs: readonly ProgramLookup[],
  {
    subjects,
    optional,
  }: { readonly subjects: readonly SelectableSubjectName[]; readonly optional: readonly ProgramName[] },
): AvailablePrograms {
  const missing = programs.filter((program) => program.kind === 'missing');
  const messages = missing.map(({ name, reason, remedy }) => `${name} is missing (${reason}); to get it: ${remedy}`);
  const fatal = missing.findIndex(({ name }) => !optional.includes(name));
  if (fatal >= 0) throw new Error(messages[fatal]);
  const missingNames = new Set<ProgramName>(missing.map(({ name }) => name));
  const isMissing = (name: SelectableSubjectName): boolean => {
    const program = PROGRAM_BY_SUBJECT[name];
    return program !== undefined && missingNames.has(program);
  };
  return {
    versions: Object.fromEntries(
      programs.flatMap((program) => (program.kind === 'available' ? [[program.name, program.version]] : [])),
    ),
    subjects: subjects.filter((name) => !isMissing(name)),
    leftOut: missing.map(({ name, reason, remedy }) => `${name}: ${reason}; to get it: ${remedy}`),
  };
}

/** Downloads Redis if it is missing, and returns its version. */
export async function provideRedis(): Promise<string> {
  const [redis] = await providePrograms(['redis-server']);
  if (redis?.kind === 'available') return redis.version;
  throw new Error(`redis-server is missing (${redis?.reason}); to get it: ${redis?.remedy}`);
}
