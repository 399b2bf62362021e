import { providePrograms } from '@weir/testkit';

/** Its version. Throws, with what to do, where it cannot be had. */
export async function provideRedis(): Promise<string> {
  const [redis] = await providePrograms(['redis-server']);
  if (redis?.kind === 'available') return redis.version;
  throw new Error(`redis-server is missing (${redis?.reason}); to get it: ${redis?.remedy}`);
}
