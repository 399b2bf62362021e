import { readFileIfPresent } from '@weir/runtime';

const MIGRATE = '/proc/sys/net/ipv4/tcp_migrate_req';

/** What of the kernel's settings will cost clients something, in words; undefined: nothing, or it cannot be known. */
export async function kernelAdvice(): Promise<string | undefined> {
  const migrates = await readFileIfPresent(MIGRATE).catch(() => undefined);
  if (migrates?.trim() !== '0') return undefined;
  return 'connections that wait in the queue of a worker that ends are reset; set net.ipv4.tcp_migrate_req=1';
}
