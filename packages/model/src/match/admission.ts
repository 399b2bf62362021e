import { isSame } from '../table/same.ts';
import { compileNetworks, type Networks } from './networks.ts';
import type { Route } from './route.ts';

/** Whom the source ranges of a Service let in: one for all its routes, which may be thousands. */
export interface Admission {
  /** As they came last. */
  ranges: readonly string[];
  readonly admits: Route['admits'];
}

/**
 * `former`: what the Service had before. It stays when the ranges are the same, since an entry comes whole whatever changes in
 * it. They are compiled when the first client comes: who compiles the table may have none, as the main thread of a proxy.
 */
export function admissionFor(ranges: readonly string[], former: Admission | undefined): Admission {
  if (ranges.length === 0) return OPEN;
  if (former === undefined || !isSame(ranges, former.ranges)) return admissionOf(ranges);
  // The list of before can go.
  former.ranges = ranges;
  return former;
}

/** Of all Services without ranges. */
const OPEN: Admission = { ranges: Object.freeze([]), admits: () => true };

function admissionOf(ranges: readonly string[]): Admission {
  let networks: Networks | undefined;
  const admission: Admission = {
    ranges,
    admits: ({ address }) => {
      networks ??= compileNetworks(admission.ranges);
      return networks.holds(address);
    },
  };
  return admission;
}
