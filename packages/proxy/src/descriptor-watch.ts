import type { Logger } from '@weir/runtime';
import { descriptorLimit, forConnections, openDescriptors } from './open-descriptors.ts';

/** Of what connections may use. */
const WARN_AT = 0.8;
/** Below it the next rise is told again. */
const WELL_AT = 0.7;

export interface DescriptorWatchOptions {
  readonly log: Logger;
  readonly limit?: number | undefined;
  readonly open?: () => number;
}

/** Says once when descriptors become few: before connections are refused for it. Call it once a second. */
export function createDescriptorWatch(options: DescriptorWatchOptions): () => void {
  const { log, limit = descriptorLimit(), open = openDescriptors } = options;
  let isTold = false;
  return () => {
    if (limit === undefined) return;
    const used = open();
    const usable = forConnections(limit);
    if (used < WELL_AT * usable) isTold = false;
    if (used < WARN_AT * usable || isTold) return;
    isTold = true;
    log.warn(
      { open: used, limit, advice: 'raise the limit of open files of this process (LimitNOFILE, ulimit -n)' },
      'descriptors become few; when they are used up new connections are refused (no-descriptors)',
    );
  };
}
