import { PublishedFleet, type PublishedFleetOptions } from './measure-start.ts';
import type { ProxyStartRow } from './start-result.ts';

export type MeasureStartsOptions = Omit<PublishedFleetOptions, 'here'> & {
  readonly here: readonly number[];
  readonly rounds: number;
  readonly signal: AbortSignal;
  readonly say: (text: string) => void;
};

/**
 * Starts of a proxy for each share of the Services, one of each in every round: what else the machine does for some seconds then befalls
 * all of them. A share whose start is not valid is told, and not started again.
 */
export async function measureStarts(
  options: MeasureStartsOptions,
): Promise<{ rows: ProxyStartRow[]; failures: string[] }> {
  const { here: wanted, rounds, signal, say, ...common } = options;
  const shares = new Map<number, PublishedFleet>();
  const rows: ProxyStartRow[] = [];
  const failures: string[] = [];
  const attempt = async (here: number, work: () => Promise<void>): Promise<void> => {
    if (signal.aborted) return;
    try {
      await work();
    } catch (error) {
      shares.delete(here);
      failures.push(`${here} Services here: ${error instanceof Error ? error.message : String(error)}`);
    }
  };

  for (const here of wanted) {
    await attempt(here, async () => void shares.set(here, await PublishedFleet.publish({ ...common, here })));
  }
  for (let round = 1; round < rounds; round++) {
    for (const [here, share] of shares) await attempt(here, () => share.startProxy());
    say(`${round} of ${rounds} starts of each`);
  }
  for (const [here, share] of shares) {
    await attempt(here, async () => {
      const row = await share.startAndScrapeProxy();
      rows.push(row);
      say(
        `${row.here} Services here: served after ${row.starts.map(({ servingMs }) => servingMs.toFixed(0)).join(', ')} ms`,
      );
    });
  }
  return { rows, failures };
}
