import { isJsonEqual } from '../table/same.ts';
import { compileNetworks, type NetworkSet } from './networks.ts';
import type { Route } from './route.ts';

/** Whom the source ranges of a Service let in: one for all its routes, which may be thousands. */
export interface SourceRangeCheck {
  /** As they came last. */
  ranges: readonly string[];
  readonly allowsSource: Route['allowsSource'];
}

/**
 * `former`: what the Service had before. It stays when the ranges are the same, since an entry comes whole whatever changes in
 * it. They are compiled when the first client comes: who compiles the table may have none, as the main thread of a proxy.
 */
export function sourceRangeCheckFor(ranges: readonly string[], former: SourceRangeCheck | undefined): SourceRangeCheck {
  if (ranges.length === 0) return ALLOW_ALL;
  if (former === undefined || !isJsonEqual(ranges, former.ranges)) return compileSourceRanges(ranges);
  // The list of before can go.
  former.ranges = ranges;
  return former;
}

/** Of all Services without ranges. */
const ALLOW_ALL: SourceRangeCheck = { ranges: Object.freeze([]), allowsSource: () => true };

function compileSourceRanges(ranges: readonly string[]): SourceRangeCheck {
  let networks: NetworkSet | undefined;
  const admission: SourceRangeCheck = {
    ranges,
    allowsSource: ({ address }) => {
      networks ??= compileNetworks(admission.ranges);
      return networks.contains(address);
    },
  };
  return admission;
}
