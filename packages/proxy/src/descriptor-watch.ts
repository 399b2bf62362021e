import type { Logger } from '@weir/runtime';
import { countOpenDescriptors, descriptorLimit, descriptorsForConnections } from './open-descriptors.ts';

/** Of what connections may use. */
const WARN_ABOVE_SHARE = 0.8;
/** Below it the next rise is told again. */
const RESET_BELOW_SHARE = 0.7;

export interface DescriptorMonitorOptions {
  readonly log: Logger;
  readonly limit?: number | undefined;
  readonly open?: () => number;
}

/** Says once when descriptors become few: before connections are refused for it. Call it once a second. */
export function createDescriptorMonitor(options: DescriptorMonitorOptions): () => void {
  const { log, limit = descriptorLimit(), open = countOpenDescriptors } = options;
  let isTold = false;
  return () => {
    if (limit === undefined) return;
    const used = open();
    const usable = descriptorsForConnections(limit);
    if (used < RESET_BELOW_SHARE * usable) isTold = false;
    if (used < WARN_ABOVE_SHARE * usable || isTold) return;
    isTold = true;
    log.warn(
      { open: used, limit, advice: 'raise the limit of open files of this process (LimitNOFILE, ulimit -n)' },
      'descriptors become few; when they are used up new connections are refused (no-descriptors)',
    );
  };
}
