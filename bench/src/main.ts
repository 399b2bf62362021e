import { parseArguments } from './arguments.ts';
import { help } from './help.ts';
import { benchmarkL4 } from './l4/benchmark.ts';

// Ctrl-C ends the run between two measurements, so that what was started is stopped and temporary files go.
const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
}

process.exitCode = await run(process.argv.slice(2));

async function run(args: readonly string[]): Promise<number> {
  const command = parseArguments(args);
  switch (command.kind) {
    case 'help':
      console.log(help);
      return 0;
    case 'wrong':
      console.error(`bench: ${command.message}; see npm run bench -- --help`);
      return 2;
    case 'l4':
      try {
        return await benchmarkL4(command.options, interruption.signal);
      } catch (error) {
        console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
        return 1;
      }
  }
}
