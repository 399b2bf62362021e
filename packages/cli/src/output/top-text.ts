import type { LiveFrame, Rate } from '@weir/console';
import { bitRateText, countText, refusalsText, shareText } from './amounts.ts';
import { colourizeFor } from './ansi.ts';
import { tableText } from './table.ts';

export const SORT_COLUMNS = ['total', 'out', 'in', 'connections', 'requests', 'refused', 'name'] as const;
export type SortColumn = (typeof SORT_COLUMNS)[number];

const SORT_KEYS: Readonly<Record<Exclude<SortColumn, 'name'>, (rate: Rate) => number>> = {
  total: ({ inBitsPerSecond, outBitsPerSecond }) => inBitsPerSecond + outBitsPerSecond,
  out: ({ outBitsPerSecond }) => outBitsPerSecond,
  in: ({ inBitsPerSecond }) => inBitsPerSecond,
  connections: ({ newConnectionsPerSecond }) => newConnectionsPerSecond,
  requests: ({ requestsPerSecond }) => requestsPerSecond,
  refused: refusalsPerSecond,
};

function refusalsPerSecond({ refusedPerSecond = {} }: Rate): number {
  return Object.values(refusedPerSecond).reduce((sum, count) => sum + count, 0);
}

export interface FrameFilter {
  readonly tenant?: string;
  readonly sort: SortColumn;
}

/**
 * Returns the frame with its tenants and Services sorted by `sort`; `total` is in + out. Keeps only the tenant `tenant`, or all tenants if
 * `tenant` is undefined.
 */
export function sortedFrame(frame: LiveFrame, { tenant, sort }: FrameFilter): LiveFrame {
  const bySortColumn = (a: Rate & { name: string }, b: Rate & { name: string }): number =>
    (sort === 'name' ? 0 : SORT_KEYS[sort](b) - SORT_KEYS[sort](a)) || (a.name < b.name ? -1 : 1);
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

export function topText(frame: LiveFrame, colour: boolean): string {
  const table = tableText<RateLine>(
    [
      { title: 'TENANT / SERVICE', value: (line) => line.name },
      { title: 'IN', value: ({ rate }) => bitRateText(rate.inBitsPerSecond), align: 'right' },
      { title: 'OUT', value: ({ rate }) => bitRateText(rate.outBitsPerSecond), align: 'right' },
      { title: 'CONN/S', value: ({ rate }) => countText(rate.newConnectionsPerSecond), align: 'right' },
      { title: 'REQ/S', value: ({ rate }) => countText(rate.requestsPerSecond), align: 'right' },
      {
        title: '5XX',
        // An older console sends no server errors.
        value: ({ rate }) => shareText(rate.serverErrorsPerSecond ?? 0, rate.requestsPerSecond),
        align: 'right',
      },
    ],
    linesFor(frame, colour),
  );
  return `${colourizeFor(colour)('dim', frame.at)}\n${table}`;
}

/** Returns the tenants and Services that refuse clients, with the reasons. */
export function refusalText(frame: LiveFrame, colour: boolean): string {
  const lines = linesFor(frame, colour).filter(({ rate }) => refusalsPerSecond(rate) > 0);
  const table = tableText<RateLine>(
    [
      { title: 'TENANT / SERVICE', value: (line) => line.name },
      { title: 'REFUSED/S', value: ({ rate }) => countText(refusalsPerSecond(rate)), align: 'right' },
      { title: 'REASONS', value: ({ rate }) => refusalsText(rate.refusedPerSecond ?? {}) },
    ],
    lines,
  );
  const text = lines.length === 0 ? 'no client is being refused\n' : table;
  return `${colourizeFor(colour)('dim', frame.at)}\n${text}`;
}

/** Returns a line for each tenant, followed by the lines of the tenant's Services. */
function linesFor({ tenants, services }: LiveFrame, colour: boolean): RateLine[] {
  const paint = colourizeFor(colour);
  return tenants.flatMap((tenant): RateLine[] => [
    { name: paint('bold', tenant.name), rate: tenant },
    ...services
      .filter((service) => service.tenant === tenant.name)
      .map((service) => ({ name: `  ${service.namespace}/${service.name}`, rate: service })),
  ]);
}
