import { availableParallelism } from 'node:os';
import { type RunningProxy, startProxy } from '@weir/proxy';
import type { Clock, Logger, Secret } from '@weir/runtime';
import type { Store } from '@weir/store';
import { version } from '../version.ts';

export interface NodeProxyOptions {
  /** Two proxies of one fleet and node on this machine would serve the same: the second one waits. */
  readonly fleet: string;
  readonly node: string;
  readonly store: Store;
  /** What private keys are sealed with; undefined: none can be opened. */
  readonly fleetSecret: Secret | undefined;
  readonly workers: number | undefined;
  readonly trustProxyProtocol: readonly string[] | undefined;
  readonly state: string | undefined;
  /** Somebody asked for a drain on its local socket. */
  readonly onDrain: () => void;
  readonly log: Logger;
  readonly clock: Clock;
}

/** The proxy of one node in this process. */
export function startNodeProxy(options: NodeProxyOptions): Promise<RunningProxy> {
  const { workers = availableParallelism(), state, log, ...same } = options;
  return startProxy({
    ...same,
    workers,
    stateDirectory: state,
    log: log.child({ part: 'proxy' }),
    version: version(),
  });
}
