import { parseArgs } from 'node:util';
import { type ControlScenario, controlScenarios, isControlScenario } from './scenario-name.ts';

export type ControlOptions = {
  /** How many Services, ascending; each is a run of its own. */
  readonly services: readonly number[];
  readonly followers: number;
  /** Changes of each scenario. */
  readonly rounds: number;
  /** Absent: all. In the order in which they run. */
  readonly only?: readonly ControlScenario[];
};

export const controlDefaults = { services: [10, 100, 1_000, 10_000], followers: 100, rounds: 100 } as const;

const ranges = {
  services: { least: 1, most: 10_000 },
  followers: { least: 1, most: 200 },
  rounds: { least: 1, most: 1_000 },
} as const;

/** Throws with one sentence when an argument is wrong. */
export function parseControlArguments(
  args: readonly string[],
): { readonly kind: 'help' } | { readonly kind: 'control'; readonly options: ControlOptions } {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      help: { type: 'boolean', short: 'h' },
      services: { type: 'string', default: controlDefaults.services.join(',') },
      followers: { type: 'string', default: String(controlDefaults.followers) },
      rounds: { type: 'string', default: String(controlDefaults.rounds) },
      only: { type: 'string' },
    },
  });
  if (values.help) return { kind: 'help' };
  if (positionals[0] !== undefined) throw new Error(`"${positionals[0]}" is too much`);
  const services = values.services.split(',').map((text) => parseWhole('services', text.trim()));
  const only = values.only === undefined ? undefined : parseScenarios(values.only);
  return {
    kind: 'control',
    options: {
      services: [...new Set(services)].sort((a, b) => a - b),
      followers: parseWhole('followers', values.followers),
      rounds: parseWhole('rounds', values.rounds),
      ...(only === undefined ? {} : { only }),
    },
  };
}

function parseWhole(option: keyof typeof ranges, text: string): number {
  const { least, most } = ranges[option];
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < least || value > most) {
    throw new Error(`--${option} is "${text}"; use a whole number from ${least} to ${most}`);
  }
  return value;
}

function parseScenarios(text: string): ControlScenario[] {
  const names = text.split(',').map((name) => name.trim());
  const wrong = names.find((name) => !isControlScenario(name));
  if (wrong !== undefined) throw new Error(`--only names "${wrong}"; use some of ${controlScenarios.join(', ')}`);
  return controlScenarios.filter((name) => names.includes(name));
}
