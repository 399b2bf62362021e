import { type Command, parseArguments } from './arguments.ts';
import { benchmarkControl } from './control/benchmark.ts';
import { benchmarkCost } from './cost/benchmark.ts';
import { benchmarkCutoff } from './cutoff/benchmark.ts';
import { benchmarkFairness } from './fairness/benchmark.ts';
import { help } from './help.ts';
import { benchmarkHostile } from './hostile/benchmark.ts';
import { benchmarkL4 } from './l4/benchmark.ts';
import { benchmarkL7 } from './l7/benchmark.ts';
import { benchmarkLeases } from './leases/benchmark.ts';
import { benchmarkLimits } from './limits/benchmark.ts';
import { benchmarkPropagation } from './propagation/benchmark.ts';
import { soak } from './soak/soak.ts';
import { benchmarkStart } from './start/benchmark.ts';

// Ctrl-C ends the run only between two measurements, so that the run can stop its processes and remove temporary files.
const interruption = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => interruption.abort(new Error(`interrupted by ${signal}`)));
}

process.exitCode = await run(parseArguments(process.argv.slice(2)));

async function run(command: Command): Promise<number> {
  switch (command.kind) {
    case 'help':
      console.log(help);
      return 0;
    case 'invalid':
      console.error(`bench: ${command.message}; see npm run bench -- --help`);
      return 2;
    case 'l4':
      return runOrReportFailure(() => benchmarkL4(command.options, interruption.signal));
    case 'l7':
      return runOrReportFailure(() => benchmarkL7(command.options, interruption.signal));
    case 'cost':
      return runOrReportFailure(() => benchmarkCost(command.options, interruption.signal));
    case 'fairness':
      return runOrReportFailure(() => benchmarkFairness(command.options, interruption.signal));
    case 'hostile':
      return runOrReportFailure(() => benchmarkHostile(command.options, interruption.signal));
    case 'control':
      return runOrReportFailure(() => benchmarkControl(command.options, interruption.signal));
    case 'propagation':
      return runOrReportFailure(() => benchmarkPropagation(command.options, interruption.signal));
    case 'cutoff':
      return runOrReportFailure(() => benchmarkCutoff(command.options, interruption.signal));
    case 'limits':
      return runOrReportFailure(() => benchmarkLimits(command.options, interruption.signal));
    case 'leases':
      return runOrReportFailure(() => benchmarkLeases(command.options, interruption.signal));
    case 'start':
      return runOrReportFailure(() => benchmarkStart(command.options, interruption.signal));
    case 'soak':
      return runOrReportFailure(() => soak(command.options, interruption.signal));
  }
}

async function runOrReportFailure(benchmark: () => Promise<number>): Promise<number> {
  try {
    return await benchmark();
  } catch (error) {
    console.error(`bench: ${error instanceof Error ? error.message : String(error)}`);
    return 1;
  }
}
