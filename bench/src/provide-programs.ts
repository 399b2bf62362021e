import { type ProgramLookup, type ProgramName, providePrograms } from '@weir/tools';
import type { SubjectName } from './subjects/subject.ts';

/** The program of each subject. Subjects without a program run on Node. */
export type SubjectPrograms = Readonly<Partial<Record<SubjectName, ProgramName>>>;

const L4_PROGRAMS: SubjectPrograms = { haproxy: 'haproxy', nginx: 'nginx-stream', envoy: 'envoy' };
export const L7_PROGRAMS: SubjectPrograms = { haproxy: 'haproxy', nginx: 'nginx', envoy: 'envoy' };

export type AvailablePrograms<Name extends SubjectName> = {
  readonly versions: Readonly<Record<string, string>>;
  readonly subjects: readonly Name[];
  readonly leftOut: readonly string[];
};

/** Downloads missing programs. Throws if a program in `load`, or the program of a subject that the user selected, is unavailable. */
export async function provideSubjects<Name extends SubjectName>(
  { subjects, usesDefaultSubjects }: { readonly subjects: readonly Name[]; readonly usesDefaultSubjects: boolean },
  load: readonly ProgramName[],
  programOf: SubjectPrograms = L4_PROGRAMS,
): Promise<AvailablePrograms<Name>> {
  const peers = subjects.flatMap((name) => programOf[name] ?? []);
  return selectAvailable(await providePrograms([...new Set([...load, ...peers])]), {
    subjects,
    programOf,
    optional: usesDefaultSubjects ? peers.filter((name) => !load.includes(name)) : [],
  });
}

export function selectAvailable<Name extends SubjectName>(
  programs: readonly ProgramLookup[],
  {
    subjects,
    optional,
    programOf = L4_PROGRAMS,
  }: {
    readonly subjects: readonly Name[];
    readonly optional: readonly ProgramName[];
    readonly programOf?: SubjectPrograms;
  },
): AvailablePrograms<Name> {
  const missing = programs.filter((program) => program.kind === 'missing');
  const messages = missing.map(({ name, reason, remedy }) => `${name} is missing (${reason}); to get it: ${remedy}`);
  const fatal = missing.findIndex(({ name }) => !optional.includes(name));
  if (fatal >= 0) throw new Error(messages[fatal]);
  const missingNames = new Set<ProgramName>(missing.map(({ name }) => name));
  const isMissing = (name: Name): boolean => {
    const program = programOf[name];
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
