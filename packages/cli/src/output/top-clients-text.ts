import type { TopClient, TopClients } from '@weir/model';
import { bytesText, countText, shareText } from './amounts.ts';
import { toSingleLine } from './ansi.ts';
import { tableText } from './table.ts';

/** What the console answers about the clients of a tenant. */
export interface TopClientsResponse {
  readonly tenant: string;
  readonly since: string;
  readonly bytes: TopClients;
  readonly connections: TopClients;
  /** The proxies whose clients are missing. */
  readonly missing: readonly { readonly node: string; readonly problem: string }[];
}

/** How many clients a table lists. `-o json` prints all. */
const MAX_ROWS = 20;

export function topClientsText({ tenant, since, bytes, connections }: TopClientsResponse): string {
  if (bytes.clients.length === 0 && connections.clients.length === 0)
    return `no client of tenant ${toSingleLine(tenant)} since ${toSingleLine(since)}\n`;
  return [
    `clients of tenant ${toSingleLine(tenant)} since ${toSingleLine(since)}; the true value is at most ERROR lower\n`,
    clientsTable('BYTES', bytes, bytesText),
    clientsTable('CONNECTIONS', connections, countText),
  ].join('\n');
}

function clientsTable(title: string, { total, clients }: TopClients, text: (amount: number) => string): string {
  return tableText<TopClient>(
    [
      { title: 'CLIENT', value: ({ client }) => toSingleLine(client) },
      { title, value: ({ estimate }) => text(estimate), align: 'right' },
      { title: 'ERROR', value: ({ error }) => (error === 0 ? '-' : text(error)), align: 'right' },
      { title: 'SHARE', value: ({ estimate }) => shareText(estimate, total), align: 'right' },
    ],
    clients.slice(0, MAX_ROWS),
  );
}
