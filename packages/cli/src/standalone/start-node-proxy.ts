import { mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { type RunningProxy, startProxy } from '@weir/proxy';
import type { Clock, Logger } from '@weir/runtime';
import type { Store } from '@weir/store';

export interface NodeProxyOptions {
  /** Two proxies of one fleet and node on this machine would serve the same: the second one waits. */
  readonly fleet: string;
  readonly node: string;
  readonly store: Store;
  readonly workers: number | undefined;
  readonly state: string | undefined;
  readonly log: Logger;
  readonly clock: Clock;
}

/** The proxy of one node in this process, with a state directory of its own. */
export async function startNodeProxy(options: NodeProxyOptions): Promise<RunningProxy> {
  const { fleet, node, store, workers = availableParallelism(), state, clock } = options;
  const stateDirectory = state === undefined ? undefined : join(state, `proxy-${node}`);
  if (stateDirectory !== undefined) await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
  const log = options.log.child({ part: 'proxy', node });
  return startProxy({ store, fleet, node, workers, stateDirectory, log, clock });
}
