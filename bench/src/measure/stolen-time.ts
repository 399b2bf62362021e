import { readFileSync } from 'node:fs';

/** Of all processors together, in clock ticks (proc_stat(5)). */
export interface ProcessorTicks {
  readonly all: number;
  /** In which this machine wanted to run, and its host ran somebody else. */
  readonly stolen: number;
}

export function readProcessorTicks(): ProcessorTicks | undefined {
  try {
    return parseProcessorTicks(readFileSync('/proc/stat', 'utf8'));
  } catch {
    return undefined; // Not Linux.
  }
}

/** Undefined: it does not tell. */
export function parseProcessorTicks(stat: string): ProcessorTicks | undefined {
  // user nice system idle iowait irq softirq steal; what guests had is in the first two already.
  const ticks = /^cpu +(.+)$/m.exec(stat)?.[1]?.split(' ').slice(0, 8).map(Number) ?? [];
  const stolen = ticks[7];
  if (stolen === undefined || !ticks.every(Number.isSafeInteger)) return undefined;
  return { all: ticks.reduce((sum, each) => sum + each, 0), stolen };
}

/** From 0 to 1, of what there was between the two; null: not known. */
export function stealShare(before: ProcessorTicks | undefined, after: ProcessorTicks | undefined): number | null {
  if (before === undefined || after === undefined || after.all <= before.all) return null;
  return (after.stolen - before.stolen) / (after.all - before.all);
}
