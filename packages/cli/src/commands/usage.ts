import type { UsageItem } from '@weir/console';
import { UsageError } from '@weir/runtime';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { ItemList } from '../client/responses.ts';
import { clientFor, type ServerOptions, serverOption } from '../client/server-options.ts';
import type { CommandContext } from '../command-context.ts';
import { bytesText, countText, percentText, shareText } from '../output/amounts.ts';
import { type OutputFormat, outputOption, printResult } from '../output/format.ts';
import { tableText } from '../output/table.ts';
import { isSeriesRequested, printUsageSeries, type SeriesOptions, seriesOptions } from './usage-series.ts';

const EXAMPLES = `
Examples:
  weir usage                             the current month, by tenant and Service
  weir usage shop --month 2026-01        one tenant in one month (UTC)
  weir usage -o json                     exact bytes and requests by code class, for billing
  weir usage shop --since 7d --step 1h   one tenant, hour by hour
  weir usage shop/web --since 2h --step 1m
                                         one Service, minute by minute

IN counts the bytes that clients sent (receivedBytes), OUT the bytes that clients received (sentBytes).
FORECAST is the TOTAL at the end of the current month, if the rest of the month is like its last 7 days.
It is - in the first 24 hours of the month or of the tenant's usage (forecastBytes: null).
5XX is the share of the HTTP requests that were answered with a status of 500 to 599. REFUSED counts connections, UDP flows and
HTTP requests that were refused.`;

interface UsageOptions extends ServerOptions, SeriesOptions {
  readonly month?: string;
  readonly output: OutputFormat;
}

export function addUsage(program: Command, { terminal }: CommandContext): void {
  const command = program
    .command('usage')
    .description(
      'show bytes, connections and requests of a month, and the monthly traffic limit; or a series over time',
    )
    .argument('[tenant]', 'show only this tenant; of a series also NAMESPACE/SERVICE')
    .addOption(new Option('--month <yyyy-mm>', 'month in UTC (default: the current month)').argParser(parseMonth));
  for (const option of seriesOptions()) command.addOption(option);
  command
    .addOption(outputOption())
    .addOption(serverOption())
    .addHelpText('after', EXAMPLES)
    .action(async (tenant: string | undefined, options: UsageOptions) => {
      const client = clientFor(terminal, options);
      if (isSeriesRequested(options)) return printUsageSeries({ terminal, client, target: tenant, options });
      if (tenant?.includes('/'))
        throw new UsageError(`"${tenant}" is not a tenant; for a Service, add --since or --step`);
      const data = await client.get<ItemList<UsageItem>>('/api/v1/usage', { tenant, month: options.month });
      printResult(terminal, options.output, { data, table: () => usageText(data.items) });
    });
}

function parseMonth(text: string): string {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) throw new InvalidArgumentError('Use YYYY-MM, such as 2026-01.');
  return text;
}

interface UsageLine {
  readonly name: string;
  readonly item: Omit<UsageItem, 'tenant' | 'month' | 'services' | 'trafficPerMonth' | 'forecastBytes'>;
  readonly limit: number | null;
  readonly forecast: number | null;
}

function usageText(items: readonly UsageItem[]): string {
  const lines = items.flatMap((item): UsageLine[] => [
    { name: item.tenant, item, limit: item.trafficPerMonth, forecast: item.forecastBytes },
    ...item.services.map((service) => ({
      name: `  ${service.namespace}/${service.name}`,
      item: service,
      limit: null,
      forecast: null,
    })),
  ]);
  return tableText<UsageLine>(
    [
      { title: 'TENANT / SERVICE', value: (line) => line.name },
      { title: 'IN', value: ({ item }) => bytesText(item.receivedBytes), align: 'right' },
      { title: 'OUT', value: ({ item }) => bytesText(item.sentBytes), align: 'right' },
      { title: 'TOTAL', value: ({ item }) => bytesText(item.receivedBytes + item.sentBytes), align: 'right' },
      { title: 'LIMIT', value: limitText, align: 'right' },
      { title: 'FORECAST', value: ({ forecast }) => (forecast === null ? '-' : bytesText(forecast)), align: 'right' },
      { title: 'CONNECTIONS', value: ({ item }) => countText(item.connections), align: 'right' },
      { title: 'REQUESTS', value: ({ item }) => countText(item.requests), align: 'right' },
      {
        title: '5XX',
        value: ({ item }) => shareText(item.requestsByCodeClass?.['5xx'] ?? 0, item.requests),
        align: 'right',
      },
    ],
    lines,
  );
}

function limitText({ item, limit }: UsageLine): string {
  if (limit === null) return '-';
  return `${bytesText(limit)} (${percentText(item.receivedBytes + item.sentBytes, limit)})`;
}
