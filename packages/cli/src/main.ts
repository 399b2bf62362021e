// `weir`: the only place that touches the process it runs in.

import { processTerminal } from './process-terminal.ts';
import { runWeir } from './run-weir.ts';

const { terminal, exit } = processTerminal();
exit(await runWeir(process.argv.slice(2), terminal));
