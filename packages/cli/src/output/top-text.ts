import type { LiveFrame, Rate } from '@weir/console';
import { bitRateText, countText } from './amounts.ts';
import { colourizeFor } from './ansi.ts';
import { tableText } from './table.ts';

export const SORT_COLUMNS = ['out', 'in', 'connections', 'requests', 'name'] as const;
export type SortColumn = (typeof SORT_COLUMNS)[number];

const RATE_FIELD_BY_COLUMN: Readonly<Record<Exclude<SortColumn, 'name'>, keyof Rate>> = {
  out: 'outBitsPerSecond',
  in: 'inBitsPerSecond',
  connections: 'newConnectionsPerSecond',
  requests: 'requestsPerSecond',
};

export interface FrameFilter {
  readonly tenant?: string;
  readonly sort: SortColumn;
}

/**
 * Returns the frame with its tenants and Services sorted by the column `sort`. Keeps only the tenant `tenant`, or all tenants if `tenant`
 * is undefined.
 */
export function sortedFrame(frame: LiveFrame, { tenant, sort }: FrameFilter): LiveFrame {
  const bySortColumn = (a: Rate & { name: string }, b: Rate & { name: string }): number =>
    (sort === 'name' ? 0 : b[RATE_FIELD_BY_COLUMN[sort]] - a[RATE_FIELD_BY_COLUMN[sort]]) || (a.name < b.name ? -1 : 1);
  return {
    at: frame.at,
    tenants: frame.tenants.filter(({ name }) => tenant === undefined || name === tenant).sort(bySortColumn),
    services: frame.services.filter((service) => tenant === undefined || service.tenant === tenant).sort(bySortColumn),
  };
}

interface RateLine {
  readonly name: string;
  readonly rate: Rate;
}

export function topText({ at, tenants, services }: LiveFrame, colour: boolean): string {
  const paint = colourizeFor(colour);
  const lines = tenants.flatMap((tenant): RateLine[] => [
    { name: paint('bold', tenant.name), rate: tenant },
    ...services
      .filter((service) => service.tenant === tenant.name)
      .map((service) => ({ name: `  ${service.namespace}/${service.name}`, rate: service })),
  ]);
  const table = tableText<RateLine>(
    [
      { title: 'TENANT / SERVICE', value: (line) => line.name },
      { title: 'IN', value: ({ rate }) => bitRateText(rate.inBitsPerSecond), align: 'right' },
      { title: 'OUT', value: ({ rate }) => bitRateText(rate.outBitsPerSecond), align: 'right' },
      { title: 'CONNECTIONS/S', value: ({ rate }) => countText(rate.newConnectionsPerSecond), align: 'right' },
      { title: 'REQUESTS/S', value: ({ rate }) => countText(rate.requestsPerSecond), align: 'right' },
    ],
    lines,
  );
  return `${paint('dim', at)}\n${table}`;
}
