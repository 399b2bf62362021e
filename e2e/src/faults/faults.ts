// The faults of the suite: what happens, how long the fault lasts, and what the documentation promises about a Suspension that is made
// during the fault.
import { setTimeout } from 'node:timers/promises';
import { NODES, type NodeName } from '../addresses.ts';
import { FAULTY_NODE, type FaultFleet, OTHER_NODES } from './fault-fleet.ts';

export interface Fault {
  /** The name in the table and of the test. */
  readonly name: string;
  readonly seconds: number;
  inject(faultFleet: FaultFleet): Promise<void> | void;
  /** Ends the fault. */
  heal(faultFleet: FaultFleet): Promise<void> | void;
  /** Changes the fleet before the clients start, and back after they have ended. */
  prepare?(faultFleet: FaultFleet): Promise<void>;
  restore?(faultFleet: FaultFleet): Promise<void>;
  /** The proxies that the fault kills: their connections are cut, and the usage of their last flush interval may be lost. */
  readonly kills?: { readonly nodes: readonly NodeName[]; readonly restartedBy: 'inject' | 'heal' };
  /** The node whose proxy makes no progress during the fault. */
  readonly stops?: NodeName;
  /** How the tenant `later` is suspended during the fault, and on which nodes this takes effect before the end of the fault. */
  readonly suspend: {
    readonly with: 'weir' | 'kubectl';
    readonly reaches: readonly NodeName[];
    /** After how many minutes the Suspension ends; default: never. */
    readonly endsAfterMinutes?: number;
  };
}

const PAUSE_SECONDS = 30;
const sleep = (seconds: number): Promise<void> => setTimeout(seconds * 1_000);
const everywhere = (how: 'weir' | 'kubectl'): Fault['suspend'] => ({ with: how, reaches: NODES });
/** A Suspension of `kubectl` reaches the proxies when Redis is back. */
const AFTER_REDIS: Fault['suspend'] = { with: 'kubectl', reaches: [] };
const OTHERS: Fault['suspend'] = { with: 'weir', reaches: OTHER_NODES };

export const REDIS_KILLED: Fault = {
  name: 'kill -9 of Redis, restart after 5 s',
  seconds: 5,
  inject: ({ fleet }) => fleet.redis.stop({ signal: 'SIGKILL' }),
  heal: ({ fleet }) => fleet.redis.start(),
  suspend: AFTER_REDIS,
};

export const FAULTS: readonly Fault[] = [
  killed('controller', 15, 'weir'),
  killed('console', 5, 'kubectl'),
  REDIS_KILLED,
  {
    name: 'kill -9 of the API server, restart after 10 s',
    seconds: 10,
    inject: ({ fleet }) => fleet.cluster.stopApiServer({ signal: 'SIGKILL' }),
    heal: ({ fleet }) => fleet.cluster.startApiServer(),
    suspend: everywhere('weir'),
  },
  {
    name: 'kill -9 of one proxy, restart after 10 s',
    seconds: 10,
    inject: async ({ fleet }) => void (await fleet.processOf(FAULTY_NODE).stop('SIGKILL')),
    heal: ({ fleet }) => fleet.start(FAULTY_NODE),
    kills: { nodes: [FAULTY_NODE], restartedBy: 'heal' },
    suspend: OTHERS,
  },
  {
    name: `SIGSTOP of the controller for ${PAUSE_SECONDS} s`,
    seconds: PAUSE_SECONDS,
    inject: ({ fleet }) => fleet.processOf('controller').signal('SIGSTOP'),
    heal: ({ fleet }) => fleet.processOf('controller').signal('SIGCONT'),
    suspend: everywhere('weir'),
  },
  {
    name: `SIGSTOP of Redis for ${PAUSE_SECONDS} s`,
    seconds: PAUSE_SECONDS,
    inject: ({ fleet }) => fleet.redis.pause(),
    heal: ({ fleet }) => fleet.redis.resume(),
    suspend: AFTER_REDIS,
  },
  {
    name: `SIGSTOP of one proxy for ${PAUSE_SECONDS} s`,
    seconds: PAUSE_SECONDS,
    inject: ({ fleet }) => fleet.processOf(FAULTY_NODE).signal('SIGSTOP'),
    heal: ({ fleet }) => fleet.processOf(FAULTY_NODE).signal('SIGCONT'),
    stops: FAULTY_NODE,
    suspend: OTHERS,
  },
  {
    name: 'Redis restarted with its data',
    seconds: 3,
    inject: ({ fleet }) => fleet.redis.restart(),
    heal: () => undefined,
    suspend: everywhere('kubectl'),
  },
  {
    name: 'Redis restarted without its data',
    seconds: 3,
    inject: ({ fleet }) => fleet.redis.wipe(),
    heal: () => undefined,
    suspend: everywhere('kubectl'),
  },
  {
    name: `network between one proxy and Redis cut for ${PAUSE_SECONDS} s`,
    seconds: PAUSE_SECONDS,
    inject: (faultFleet) => faultFleet.cutNetwork(),
    heal: (faultFleet) => faultFleet.restoreNetwork(),
    suspend: OTHERS,
  },
  {
    name: 'disk of the state directory of one proxy full for 20 s, with Redis away for 5 s',
    seconds: 20,
    async inject({ fleet, fillDisk }) {
      fillDisk();
      await fleet.redis.stop({ signal: 'SIGKILL' });
      await sleep(5);
      await fleet.redis.start();
    },
    heal: (faultFleet) => faultFleet.freeDisk(),
    suspend: everywhere('weir'),
  },
  {
    name: 'kill -9 and restart of one proxy while Redis is away',
    seconds: 10,
    async inject(faultFleet) {
      await faultFleet.fleet.redis.stop({ signal: 'SIGKILL' });
      await sleep(5);
      await restartKilled(faultFleet, [FAULTY_NODE]);
    },
    heal: ({ fleet }) => fleet.redis.start(),
    kills: { nodes: [FAULTY_NODE], restartedBy: 'inject' },
    suspend: AFTER_REDIS,
  },
  {
    name: 'kill -9 and restart of one proxy while the disk of its state directory is full',
    seconds: 5,
    async inject(faultFleet) {
      faultFleet.fillDisk();
      await restartKilled(faultFleet, [FAULTY_NODE]);
    },
    heal: (faultFleet) => faultFleet.freeDisk(),
    kills: { nodes: [FAULTY_NODE], restartedBy: 'inject' },
    suspend: everywhere('weir'),
  },
  {
    name: 'Redis restarted without its data while the controller is away',
    seconds: 10,
    async inject({ fleet }) {
      await fleet.processOf('controller').stop('SIGKILL');
      await fleet.redis.wipe();
    },
    heal: ({ fleet }) => fleet.start('controller'),
    suspend: { with: 'kubectl', reaches: [] },
  },
  {
    name: 'Redis restored from a copy of 10 s before',
    seconds: 10,
    inject: (faultFleet) => faultFleet.copyRedis(),
    heal: (faultFleet) => faultFleet.restoreRedis(),
    suspend: everywhere('kubectl'),
  },
  {
    name: 'kill -9 and restart of all processes at the same time',
    seconds: 0,
    async inject(faultFleet) {
      const { fleet } = faultFleet;
      const processes = ['controller', 'console', ...NODES] as const;
      await Promise.all([
        ...processes.map((part) => fleet.processOf(part).stop('SIGKILL')),
        fleet.redis.stop({ signal: 'SIGKILL' }),
        fleet.cluster.stopApiServer({ signal: 'SIGKILL' }),
      ]);
      await Promise.all([fleet.redis.start(), fleet.cluster.startApiServer()]);
      for (const part of processes) await fleet.start(part);
      await faultFleet.waitUntilReady(NODES);
    },
    heal: () => undefined,
    kills: { nodes: NODES, restartedBy: 'inject' },
    suspend: everywhere('kubectl'),
  },
  clockChanged(FAULTY_NODE, 'the clock of one node'),
  clockChanged('controller', 'the clock of the controller'),
  {
    name: '10 minutes without Redis',
    seconds: 600,
    inject: ({ fleet }) => fleet.redis.stop({ signal: 'SIGKILL' }),
    heal: ({ fleet }) => fleet.redis.start(),
    suspend: AFTER_REDIS,
  },
];

async function restartKilled({ fleet, waitUntilReady }: FaultFleet, nodes: readonly NodeName[]): Promise<void> {
  for (const node of nodes) {
    await fleet.processOf(node).stop('SIGKILL');
    await fleet.start(node);
  }
  await waitUntilReady(nodes);
}

function killed(part: 'controller' | 'console', seconds: number, suspendWith: 'weir' | 'kubectl'): Fault {
  return {
    name: `kill -9 of the ${part}, restart after ${seconds} s`,
    seconds,
    inject: async ({ fleet }) => void (await fleet.processOf(part).stop('SIGKILL')),
    heal: ({ fleet }) => fleet.start(part),
    suspend: everywhere(suspendWith),
  };
}

/** The clock goes one hour forwards, then one hour backwards from the true time, and is right at the end of the fault. */
function clockChanged(part: NodeName | 'controller', whose: string): Fault {
  return {
    name: `${whose} 1 h forwards, then 1 h behind, then right`,
    seconds: 10,
    prepare: (faultFleet) => faultFleet.restartWithClock(part, 'settable'),
    inject: ({ setClock }) => setClock('+1h'),
    async heal({ setClock }) {
      setClock('-1h');
      await sleep(10);
      setClock('+0');
    },
    restore: (faultFleet) => faultFleet.restartWithClock(part, 'real'),
    // A Suspension that ends in half an hour has ended by a clock that is one hour ahead.
    suspend:
      part === 'controller'
        ? everywhere('kubectl')
        : { with: 'kubectl', reaches: NODES.filter((node) => node !== part), endsAfterMinutes: 30 },
  };
}
