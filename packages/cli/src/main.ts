import { runWeir } from './run-weir.ts';
import { processTerminal } from './terminal.ts';

const { terminal, exit } = processTerminal();
exit(await runWeir(process.argv.slice(2), terminal));
