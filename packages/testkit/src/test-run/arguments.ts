export type TestSelection = {
  readonly suite: 'all' | 'e2e';
  /** Parts of paths of test files. */
  readonly filters: readonly string[];
  /** For node itself. */
  readonly flags: readonly string[];
};

/** Flags of node --test that may be written with their value as the next argument. */
const FLAGS_WITH_VALUE: ReadonlySet<string> = new Set([
  '--test-name-pattern',
  '--test-skip-pattern',
  '--test-concurrency',
  '--test-reporter',
  '--test-reporter-destination',
  '--test-shard',
  '--test-timeout',
]);

export function parseTestArguments(args: readonly string[]): TestSelection {
  const [first, ...rest] = args;
  const filters: string[] = [];
  const flags: string[] = [];
  const queue = first === 'e2e' ? rest : [...args];
  for (let argument = queue.shift(); argument !== undefined; argument = queue.shift()) {
    if (!argument.startsWith('-')) filters.push(argument);
    else if (FLAGS_WITH_VALUE.has(argument) && queue.length > 0) flags.push(`${argument}=${queue.shift()}`);
    else flags.push(argument);
  }
  return { suite: first === 'e2e' ? 'e2e' : 'all', filters, flags };
}
