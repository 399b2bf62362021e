import { type Logger, readFileIfPresent } from '@weir/runtime';
import { descriptorLimit, descriptorsForConnections } from '../limits/descriptor-limit.ts';
import type { TransportKind } from '../transport/choose-transport.ts';
import { LISTEN_BACKLOG } from '../transport/tcp-transport.ts';

const MIN_DESCRIPTORS = 16_384;
/**
 * The lowest value of `somaxconn` that causes no warning: the length of the accept queue that each listener asks for.
 */
const MIN_ACCEPT_QUEUE = LISTEN_BACKLOG;
/**
 * The highest value of `tcp_notsent_lowat` that causes no warning. With a higher value, clients that do not read
 * exhaust the kernel's memory for TCP (`tcp_mem`), which all tenants share.
 */
const MAX_NOTSENT_LOWAT_BYTES = 1_048_576;

/**
 * Returns a warning for each kernel setting that harms clients of a proxy with this transport. Skips settings that cannot
 * be read.
 */
export async function kernelWarnings(
  transport: TransportKind,
  read: ReadSetting = readSetting,
): Promise<readonly string[]> {
  const [migrates, unsent, queue] = await Promise.all([
    read('net.ipv4.tcp_migrate_req'),
    read('net.ipv4.tcp_notsent_lowat'),
    read('net.core.somaxconn'),
  ]);
  const limit = descriptorLimit();
  const warnings: string[] = [];
  if (migrates === '0') {
    warnings.push(
      'if a worker ends, the kernel resets the connections in its accept queue; set net.ipv4.tcp_migrate_req=1',
    );
  }
  if (queue !== undefined && Number(queue) < MIN_ACCEPT_QUEUE) {
    warnings.push(
      `the kernel ignores new connections while ${queue} connections wait to be accepted; set net.core.somaxconn=${MIN_ACCEPT_QUEUE}`,
    );
  }
  // The transport `syscalls` sets this limit on each connection of a client.
  if (transport === 'node' && Number(unsent) > MAX_NOTSENT_LOWAT_BYTES) {
    warnings.push(
      'each client that does not read occupies megabytes of kernel memory, which all tenants share; set net.ipv4.tcp_notsent_lowat=131072',
    );
  }
  if (limit !== undefined && limit < MIN_DESCRIPTORS) {
    const maxConnections = Math.floor(limit / 2);
    warnings.push(
      `at most ${limit} files may be open, which allows fewer than ${maxConnections} connections; raise LimitNOFILE or ulimit -n`,
    );
  }
  return warnings;
}

/** Reads a setting such as `net.core.somaxconn`. Returns undefined if this kernel does not have the setting. */
type ReadSetting = (name: string) => Promise<string | undefined>;

async function readSetting(name: string): Promise<string | undefined> {
  const text = await readFileIfPresent(`/proc/sys/${name.replaceAll('.', '/')}`).catch(() => undefined);
  return text?.trim();
}

/** A warning is logged when more than this share of the descriptors for connections is in use. */
const WARN_ABOVE_SHARE = 0.8;
/** Another warning is possible only after the used share has fallen below this value. */
const RESET_BELOW_SHARE = 0.7;

export interface DescriptorMonitorOptions {
  readonly log: Logger;
  readonly limit?: number | undefined;
  /** Returns how many descriptors the process has open. */
  readonly open: () => number;
}

/** Returns a function that warns before connections are refused for lack of descriptors. To be called every second. */
export function createDescriptorMonitor(options: DescriptorMonitorOptions): () => void {
  const { log, limit = descriptorLimit(), open } = options;
  let isWarned = false;
  return () => {
    if (limit === undefined) return;
    const used = open();
    const usable = descriptorsForConnections(limit);
    if (used < RESET_BELOW_SHARE * usable) isWarned = false;
    if (used < WARN_ABOVE_SHARE * usable || isWarned) return;
    isWarned = true;
    log.warn(
      { open: used, limit, advice: 'raise the limit of open files of this process (LimitNOFILE, ulimit -n)' },
      'descriptors are running out; without free descriptors new connections are refused (no-descriptors)',
    );
  };
}
