import { parseArgs } from 'node:util';
import { isSubjectName, type SubjectName, subjectNames } from './subjects/subject-name.ts';

export type Command =
  | { readonly kind: 'help' }
  | { readonly kind: 'wrong'; readonly message: string }
  | { readonly kind: 'l4'; readonly options: L4Options };

export type L4Options = {
  readonly pairs: number;
  readonly seconds: number;
  readonly subjects: readonly SubjectName[];
  /** Where Weir writes CPU profiles of its threads; such a run is no result. */
  readonly profile?: string;
};

const most = { pairs: 100, seconds: 30 };

export function parseArguments(args: readonly string[]): Command {
  try {
    return commandFor(args);
  } catch (error) {
    return { kind: 'wrong', message: (error as Error).message.replace(/\. .*/s, '') };
  }
}

function commandFor(args: readonly string[]): Command {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      pairs: { type: 'string', default: '10' },
      seconds: { type: 'string', default: '2' },
      subjects: { type: 'string', default: 'weir,haproxy' },
      profile: { type: 'string' },
    },
  });
  if (values.help) return { kind: 'help' };
  const [name, ...others] = positionals;
  if (name === undefined) throw new Error('which benchmark? There is one: l4');
  if (name !== 'l4') throw new Error(`there is no benchmark "${name}"; there is one: l4`);
  if (others[0] !== undefined) throw new Error(`"${others[0]}" is too much`);
  const options = {
    pairs: parseWhole('pairs', values.pairs),
    seconds: parseWhole('seconds', values.seconds),
    subjects: parseSubjects(values.subjects),
    ...(values.profile === undefined ? {} : { profile: values.profile }),
  };
  return { kind: 'l4', options };
}

function parseWhole(option: keyof typeof most, text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1 || value > most[option]) {
    throw new Error(`--${option} is "${text}"; use a whole number from 1 to ${most[option]}`);
  }
  return value;
}

function parseSubjects(text: string): SubjectName[] {
  const names = [...new Set(text.split(',').map((name) => name.trim()))];
  return names.map((name) => {
    if (isSubjectName(name)) return name;
    throw new Error(`--subjects names "${name}"; use some of ${subjectNames.join(', ')}`);
  });
}
