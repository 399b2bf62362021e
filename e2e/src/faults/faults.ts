// The faults of the suite: what happens, how long the fault lasts, and what the documentation promises about a Suspension that is made
// during the fault.
import { NODES, type NodeName } from '../addresses.ts';
import { FAULTY_NODE, type FaultFleet, OTHER_NODES } from './fault-fleet.ts';

export interface Fault {
  /** The name in the table and of the test. */
  readonly name: string;
  readonly seconds: number;
  inject(bench: FaultFleet): Promise<void> | void;
  /** Ends the fault. */
  heal(bench: FaultFleet): Promise<void> | void;
  /** Changes the fleet before the clients start, and back after they have ended. */
  prepare?(bench: FaultFleet): Promise<void>;
  restore?(bench: FaultFleet): Promise<void>;
  /** The node whose proxy the fault kills: its connections are cut, and the usage of its last flush interval may be lost. */
  readonly kills?: NodeName;
  /** The node whose proxy makes no progress during the fault. */
  readonly stops?: NodeName;
  /** How the tenant `later` is suspended during the fault, and on which nodes this takes effect before the end of the fault. */
  readonly suspend: { readonly with: 'weir' | 'kubectl'; readonly reaches: readonly NodeName[] };
}

const PAUSE_SECONDS = 30;
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
    kills: FAULTY_NODE,
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
    inject: (bench) => bench.cutNetwork(),
    heal: (bench) => bench.restoreNetwork(),
    suspend: OTHERS,
  },
  {
    name: 'disk of the state directory of one proxy full for 20 s, with Redis away for 5 s',
    seconds: 20,
    async inject({ fleet, fillDisk }) {
      fillDisk();
      await fleet.redis.stop({ signal: 'SIGKILL' });
      await new Promise((resolve) => setTimeout(resolve, 5_000));
      await fleet.redis.start();
    },
    heal: (bench) => bench.freeDisk(),
    suspend: everywhere('weir'),
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

function killed(part: 'controller' | 'console', seconds: number, suspendWith: 'weir' | 'kubectl'): Fault {
  return {
    name: `kill -9 of the ${part}, restart after ${seconds} s`,
    seconds,
    inject: async ({ fleet }) => void (await fleet.processOf(part).stop('SIGKILL')),
    heal: ({ fleet }) => fleet.start(part),
    suspend: everywhere(suspendWith),
  };
}

/** The clock goes one hour forwards at the start of the fault, then one hour backwards from the true time, and is right at its end. */
function clockChanged(part: NodeName | 'controller', whose: string): Fault {
  return {
    name: `${whose} 1 h forwards, then 1 h behind, then right`,
    seconds: 10,
    prepare: (bench) => bench.restartWithClock(part, 'settable'),
    async inject({ setClock }) {
      setClock('+1h');
      await new Promise((resolve) => setTimeout(resolve, 10_000));
      setClock('-1h');
    },
    heal: ({ setClock }) => setClock('+0'),
    restore: (bench) => bench.restartWithClock(part, 'real'),
    suspend: everywhere('kubectl'),
  };
}
