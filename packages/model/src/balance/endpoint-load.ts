import { endpointKey } from '../match/endpoint-key.ts';
import type { Endpoint } from '../table/entry.ts';
import { hashText } from './hash.ts';

/** An endpoint of a listener as one worker weighs it. Whoever opens connections counts them in `active`. */
export interface EndpointLoad {
  /** The one of the newest table: the same address and port, perhaps another zone. */
  endpoint: Endpoint;
  active: number;
  /** For those who check or eject; they arrange the pool anew after a change. */
  isHealthy: boolean;
  /** Of its address and port: the same on every proxy. */
  readonly hash: number;
  /** Where it stands in its pool: see `arrangePool`, which sets it. */
  rank: Rank;
  /** When it began to ramp up (`slow-start.ts`), ms. */
  warmSince: number;
  /** What a ramping endpoint has saved up of its turns. */
  credit: number;
}

export type Rank = typeof FIRST | typeof SECOND | typeof UNUSED;

/** Chosen while one of them has not been tried. */
export const FIRST = 0;
/** Chosen when all of the first were tried. */
export const SECOND = 1;
/** Unhealthy while others are not, or no longer in the table. */
export const UNUSED = 2;

const ENDPOINT_SEED = 0x3c6ef372;

/** An endpoint without connections, taken for healthy and warm. */
export function createLoad(endpoint: Endpoint): EndpointLoad {
  return {
    endpoint,
    active: 0,
    isHealthy: true,
    hash: hashText(endpointKey(endpoint), ENDPOINT_SEED),
    rank: UNUSED,
    warmSince: Number.NEGATIVE_INFINITY,
    credit: 0,
  };
}
