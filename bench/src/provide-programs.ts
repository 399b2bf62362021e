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

/** Fetches what is missing. What cannot be had ends the run when the load needs it or it was asked for by name. */
export async function provideSubjects(
  { subjects, isByDefault }: { readonly subjects: readonly SelectableSubjectName[]; readonly isByDefault: boolean },
  load: readonly ProgramName[],
): Promise<AvailablePrograms> {
  const peers = subjects.flatMap((name) => PROGRAM_BY_SUBJECT[name] ?? []);
  return selectAvailable(await providePrograms([...load, ...peers]), { subjects, mayMiss: isByDefault ? peers : [] });
}

export function selectAvailable(
  programs: readonly ProgramLookup[],
  {
    subjects,
    mayMiss,
  }: { readonly subjects: readonly SelectableSubjectName[]; readonly mayMiss: readonly ProgramName[] },
): AvailablePrograms {
  const missing = programs.filter((program) => program.kind === 'missing');
  const sentences = missing.map(({ name, reason, remedy }) => `${name} is missing (${reason}); to get it: ${remedy}`);
  const fatal = missing.findIndex(({ name }) => !mayMiss.includes(name));
  if (fatal >= 0) throw new Error(sentences[fatal]);
  const gone = new Set<ProgramName>(missing.map(({ name }) => name));
  const isGone = (name: SelectableSubjectName): boolean => {
    const program = PROGRAM_BY_SUBJECT[name];
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

/** Its version. Throws, with what to do, where it cannot be had. */
export async function provideRedis(): Promise<string> {
  const [redis] = await providePrograms(['redis-server']);
  if (redis?.kind === 'available') return redis.version;
  throw new Error(`redis-server is missing (${redis?.reason}); to get it: ${redis?.remedy}`);
}
