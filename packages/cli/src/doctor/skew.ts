import { type CheckResult, error, ok, warning } from './finding.ts';

/** A reading of another clock: it showed a time from `from` to `to` at some moment from `askedAt` to `answeredAt` of ours. */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly askedAt: number;
  readonly answeredAt: number;
}

/** By how many milliseconds the other clock is ahead (behind: negative) at least: what the reading leaves open counts for it. */
export function minSkewMs({ from, to, askedAt, answeredAt }: ClockReading): number {
  const least = from - answeredAt;
  const most = to - askedAt;
  return least > 0 ? least : most < 0 ? most : 0;
}

const WARNING_SKEW_MS = 2_000;
/** Usage goes into a minute that is not its own, and Suspensions end at the wrong time. */
const ERROR_SKEW_MS = 60_000;

export interface NamedClockReading {
  readonly name: string;
  readonly reading: ClockReading;
}

/** Of the clocks of some machines against ours. */
export function checkClockSkew(clocks: readonly NamedClockReading[], what: string): CheckResult {
  const skews = clocks
    .map(({ name, reading }) => ({ name, skew: minSkewMs(reading) }))
    .filter(({ skew }) => Math.abs(skew) >= WARNING_SKEW_MS);
  if (skews.length === 0) return ok(`${what} within ${WARNING_SKEW_MS / 1_000} s of this machine's clock`);
  const told = skews.map(({ name, skew }) => `${name} is ${secondsText(skew)} ${skew > 0 ? 'ahead' : 'behind'}`);
  const message = `compared with this machine's clock ${told.join(', ')}; usage is counted by minutes and Suspensions end by the clock: let all machines, this one too, follow NTP (chronyc tracking)`;
  return skews.some(({ skew }) => Math.abs(skew) >= ERROR_SKEW_MS) ? error(message) : warning(message);
}

function secondsText(ms: number): string {
  return `${(Math.abs(ms) / 1_000).toFixed(Math.abs(ms) < 10_000 ? 1 : 0)} s`;
}
