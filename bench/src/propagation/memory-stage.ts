import { RpcProcess } from '../control/calls.ts';
import { monotonicMs } from '../control/same-time.ts';
import type { PropagationLayout } from './memory-cluster.ts';
import type { MemoryControllerRpc } from './memory-process.ts';
import type { Environment } from './stage.ts';

const CONTROLLER_PROGRAM = new URL('memory-process.ts', import.meta.url);

/** In the place of an API server, which takes minutes to be filled with ten thousand Services. */
export async function startMemoryEnvironment(
  redis: string,
  fleet: string,
  layout: PropagationLayout,
): Promise<Environment> {
  await using cleanup = new AsyncDisposableStack();
  const controller = cleanup.use(
    new RpcProcess<MemoryControllerRpc>(CONTROLLER_PROGRAM, [redis, fleet, JSON.stringify(layout)]),
  );
  await controller.call('start');
  const started = cleanup.move();
  const { nodes, services } = layout;
  return {
    nodes,
    services,
    async switchEndpoint(service, to) {
      const beganAt = monotonicMs();
      return { beganAt, writtenAt: await controller.call('move', service, to) };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
