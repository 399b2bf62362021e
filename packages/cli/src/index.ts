export { runWeir } from './run-weir.ts';
export type { Terminal } from './terminal.ts';
