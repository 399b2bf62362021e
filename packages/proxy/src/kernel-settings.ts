import { readFileIfPresent } from '@weir/runtime';
import { descriptorLimit } from './open-descriptors.ts';

const MIGRATE = '/proc/sys/net/ipv4/tcp_migrate_req';
const FEW_DESCRIPTORS = 16_384;

/** What of the kernel's settings will cost clients something, in words; what cannot be known is left out. */
export async function kernelAdvice(): Promise<readonly string[]> {
  const migrates = await readFileIfPresent(MIGRATE).catch(() => undefined);
  const limit = descriptorLimit();
  const advice: string[] = [];
  if (migrates?.trim() === '0') {
    advice.push('connections that wait in the queue of a worker that ends are reset; set net.ipv4.tcp_migrate_req=1');
  }
  if (limit !== undefined && limit < FEW_DESCRIPTORS) {
    const most = Math.floor(limit / 2);
    advice.push(
      `at most ${limit} files may be open, so fewer than ${most} connections; raise LimitNOFILE or ulimit -n`,
    );
  }
  return advice;
}
