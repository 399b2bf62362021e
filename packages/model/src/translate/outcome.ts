import type { Decision } from './decision.ts';
import type { ServiceEndpoints } from './endpoints.ts';

/** A decision with the endpoints of what it serves. */
export interface TranslatedService extends Decision {
  readonly endpoints: ServiceEndpoints;
}
