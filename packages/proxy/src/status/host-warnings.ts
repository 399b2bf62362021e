import { type Logger, readFileIfPresent } from '@weir/runtime';
import { countOpenDescriptors, descriptorLimit, descriptorsForConnections } from '../limits/descriptor-limit.ts';

const MIN_DESCRIPTORS = 16_384;
/** Of a connection, in bytes: more than this, and clients that do not read fill `tcp_mem`, which all tenants share. */
const MAX_NOTSENT_LOWAT_BYTES = 1_048_576;

/** What of the kernel's settings will cost clients something, in words; what cannot be known is left out. */
export async function kernelWarnings(read: ReadSetting = readSetting): Promise<readonly string[]> {
  const [migrates, unsent] = await Promise.all([read('tcp_migrate_req'), read('tcp_notsent_lowat')]);
  const limit = descriptorLimit();
  const advice: string[] = [];
  if (migrates === '0') {
    advice.push('connections that wait in the queue of a worker that ends are reset; set net.ipv4.tcp_migrate_req=1');
  }
  if (Number(unsent) > MAX_NOTSENT_LOWAT_BYTES) {
    advice.push(
      'clients that do not read take megabytes of kernel memory each, which all tenants share; set net.ipv4.tcp_notsent_lowat=131072',
    );
  }
  if (limit !== undefined && limit < MIN_DESCRIPTORS) {
    const most = Math.floor(limit / 2);
    advice.push(
      `at most ${limit} files may be open, so fewer than ${most} connections; raise LimitNOFILE or ulimit -n`,
    );
  }
  return advice;
}

/** Of `net.ipv4`; undefined: this kernel has none of that name. */
type ReadSetting = (name: string) => Promise<string | undefined>;

async function readSetting(name: string): Promise<string | undefined> {
  const text = await readFileIfPresent(`/proc/sys/net/ipv4/${name}`).catch(() => undefined);
  return text?.trim();
}

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
