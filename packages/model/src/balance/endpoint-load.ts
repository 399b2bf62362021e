import { endpointKey } from '../match/endpoint-key.ts';
import type { Endpoint } from '../table/entry.ts';
import { hashText } from './hash.ts';

/** An endpoint of a listener as one worker weighs it. Whoever opens connections counts them in `active`. */
export interface EndpointStats {
  /** The one of the newest table: the same address and port, perhaps another zone. */
  endpoint: Endpoint;
  activeConnections: number;
  /** For those who check or eject; they arrange the pool anew after a change. */
  isHealthy: boolean;
  /** Of its address and port: the same on every proxy. */
  readonly hash: number;
  /** Where it stands in its pool: see `arrangePool`, which sets it. */
  tier: PoolTier;
  /** When it began to ramp up (`slow-start.ts`), ms. */
  slowStartAt: number;
  /** What a ramping endpoint has saved up of its turns. */
  slowStartCredit: number;
}

export type PoolTier = typeof PREFERRED | typeof FALLBACK | typeof EXCLUDED;

/** Chosen while one of them has not been tried. */
export const PREFERRED = 0;
/** Chosen when all of the first were tried. */
export const FALLBACK = 1;
/** Unhealthy while others are not, or no longer in the table. */
export const EXCLUDED = 2;

const ENDPOINT_SEED = 0x3c6ef372;

/** An endpoint without connections, taken for healthy and warm. */
export function createEndpointStats(endpoint: Endpoint): EndpointStats {
  return {
    endpoint,
    activeConnections: 0,
    isHealthy: true,
    hash: hashText(endpointKey(endpoint), ENDPOINT_SEED),
    tier: EXCLUDED,
    slowStartAt: Number.NEGATIVE_INFINITY,
    slowStartCredit: 0,
  };
}
