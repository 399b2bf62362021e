import type { SuspensionAuditItem } from '@weir/console';
import type { ConsoleClient } from '../client/console-client.ts';
import type { AuditPage } from '../client/responses.ts';
import type { OutputFormat } from '../output/format.ts';
import { printResult } from '../output/format.ts';
import { PAST_SUSPENSION_COLUMNS } from '../output/suspension-text.ts';
import { tableText } from '../output/table.ts';
import type { Terminal } from '../terminal.ts';

interface PastQuery {
  /** The name of a Suspension. */
  readonly name: string | undefined;
  readonly namespace?: string;
  readonly tenant?: string;
  readonly output: string;
}

/** Prints the audit trail of Suspensions, oldest first, as `weir get suspensions --past`. */
export async function printPastSuspensions(terminal: Terminal, client: ConsoleClient, query: PastQuery): Promise<void> {
  const { name, namespace, tenant, output } = query;
  const items = (await readAudit(client, tenant)).filter(
    ({ suspension }) =>
      (name === undefined || suspension.name === name) &&
      (namespace === undefined || suspension.target.namespace === namespace),
  );
  const format: OutputFormat = output === 'json' || output === 'yaml' ? output : 'table';
  const text = (): string =>
    output === 'name'
      ? [...new Set(items.map(({ suspension }) => `suspension/${suspension.name}\n`))].join('')
      : items.length === 0
        ? 'No Suspensions in the last two years.\n'
        : tableText(PAST_SUSPENSION_COLUMNS, items);
  printResult(terminal, format, { data: { items }, table: text });
}

/** Reads all pages of the audit trail of a tenant or of the fleet, and returns the records oldest first. */
async function readAudit(client: ConsoleClient, tenant: string | undefined): Promise<readonly SuspensionAuditItem[]> {
  const found: SuspensionAuditItem[] = [];
  const query = new URLSearchParams(tenant === undefined ? {} : { tenant });
  let before: string | null = null;
  do {
    if (before !== null) query.set('before', before);
    const page: AuditPage = await client.get<AuditPage>(`/api/v1/suspensions/audit?${query}`);
    found.push(...page.items);
    before = page.next;
  } while (before !== null);
  return found.reverse();
}
