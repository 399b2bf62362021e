// `weir usage --since 7d --step 1h`: usage over time.
import type { UsageSeriesItem } from '@weir/console';
import {
  closestUsageStep,
  DEFAULT_USAGE_SINCE,
  DEFAULT_USAGE_STEP,
  refusalCount,
  USAGE_STEPS,
  type UsageStep,
} from '@weir/model';
import { UsageError } from '@weir/runtime';
import { InvalidArgumentError, Option } from 'commander';
import type { ConsoleClient } from '../client/console-client.ts';
import type { ItemList } from '../client/responses.ts';
import { parseServiceName } from '../client/target.ts';
import { bytesText, countText, shareText } from '../output/amounts.ts';
import { type OutputFormat, printResult } from '../output/format.ts';
import { tableText } from '../output/table.ts';
import type { Terminal } from '../terminal.ts';

export interface SeriesOptions {
  readonly since?: string;
  readonly until?: string;
  readonly step?: UsageStep;
}

export function seriesOptions(): readonly Option[] {
  return [
    new Option(
      '--since <time>',
      `show a series that begins here: a duration such as 7d, or a time (default: ${DEFAULT_USAGE_SINCE})`,
    ).conflicts('month'),
    new Option('--until <time>', 'end of the series (default: now)').conflicts('month'),
    new Option('--step <step>', `step of the series: ${USAGE_STEPS.join(', ')} (default: ${DEFAULT_USAGE_STEP})`)
      .argParser(parseStep)
      .conflicts('month'),
  ];
}

function parseStep(text: string): UsageStep {
  const step = USAGE_STEPS.find((each) => each === text);
  if (step !== undefined) return step;
  const closest = closestUsageStep(text);
  const suggestion = closest === undefined ? '' : ` Did you mean ${closest}?`;
  throw new InvalidArgumentError(`Allowed are ${USAGE_STEPS.join(', ')}.${suggestion}`);
}

export function isSeriesRequested({ since, until, step }: SeriesOptions): boolean {
  return since !== undefined || until !== undefined || step !== undefined;
}

interface SeriesCommand {
  readonly terminal: Terminal;
  readonly client: ConsoleClient;
  /** A tenant, or a Service as `NAMESPACE/SERVICE`. */
  readonly target: string | undefined;
  readonly options: SeriesOptions & { readonly output: OutputFormat };
}

export async function printUsageSeries({ terminal, client, target, options }: SeriesCommand): Promise<void> {
  const { since, until, step, output } = options;
  if (target === '') throw new UsageError('the tenant is empty: expected TENANT or NAMESPACE/SERVICE');
  const subject = target?.includes('/') ? parseServiceName(target) : { tenant: target };
  const data = await client.get<ItemList<UsageSeriesItem>>('/api/v1/usage/series', { ...subject, since, until, step });
  printResult(terminal, output, { data, table: () => seriesText(data.items) });
}

interface SeriesLine {
  readonly subject: string;
  readonly point: UsageSeriesItem['points'][number];
}

/** Returns one line per point. The column of subjects is missing if there is only one subject. */
function seriesText(items: readonly UsageSeriesItem[]): string {
  const lines = items.flatMap(({ tenant, namespace, name, points }): SeriesLine[] => {
    const subject = name === undefined ? tenant : `${namespace}/${name}`;
    return points.map((point) => ({ subject, point }));
  });
  const subjects = { title: 'TENANT', value: ({ subject }: SeriesLine) => subject };
  return tableText<SeriesLine>(
    [
      ...(items.length === 1 ? [] : [subjects]),
      { title: 'FROM (UTC)', value: ({ point }) => point.at.slice(0, 'YYYY-MM-DDThh:mm'.length).replace('T', ' ') },
      { title: 'IN', value: ({ point }) => bytesText(point.receivedBytes), align: 'right' },
      { title: 'OUT', value: ({ point }) => bytesText(point.sentBytes), align: 'right' },
      { title: 'CONNECTIONS', value: ({ point }) => countText(point.connections), align: 'right' },
      { title: 'REQUESTS', value: ({ point }) => countText(point.requests), align: 'right' },
      {
        title: '5XX',
        value: ({ point }) => shareText(point.requestsByCodeClass?.['5xx'] ?? 0, point.requests),
        align: 'right',
      },
      { title: 'REFUSED', value: ({ point }) => countText(refusalCount(point)), align: 'right' },
    ],
    lines,
  );
}
