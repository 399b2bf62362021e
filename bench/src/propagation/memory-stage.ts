import { Answering } from '../control/calls.ts';
import { sameTime } from '../control/same-time.ts';
import type { Layout } from './memory-cluster.ts';
import type { MemoryCalls } from './memory-process.ts';
import type { Stage } from './stage.ts';

const program = new URL('memory-process.ts', import.meta.url);

/** In the place of an API server, which takes minutes to be filled with ten thousand Services. */
export async function memoryStage(redis: string, fleet: string, layout: Layout): Promise<Stage> {
  await using cleanup = new AsyncDisposableStack();
  const controller = cleanup.use(new Answering<MemoryCalls>(program, [redis, fleet, JSON.stringify(layout)]));
  await controller.call('start');
  const started = cleanup.move();
  const { nodes, services } = layout;
  return {
    nodes,
    services,
    async move(service, to) {
      const beganAt = sameTime();
      return { beganAt, writtenAt: await controller.call('move', service, to) };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
