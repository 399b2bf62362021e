import type { Balancer } from './balancer.ts';

/** Each in turn. The turn is a position, so that a changed list goes on from where it was. */
export function createRoundRobin(): Balancer {
  let turn = 0;
  return {
    choose(loads) {
      const chosen = loads[turn % loads.length];
      turn = (turn + 1) % Math.max(1, loads.length);
      return chosen;
    },
  };
}
