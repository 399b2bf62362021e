// Text that says who suspended what, when and why.
import type { SuspensionItem } from '@weir/console';
import { suspendedByText } from '@weir/model';
import { targetText } from '../client/target.ts';
import { toSingleLine } from './ansi.ts';
import type { Column } from './table.ts';

/** Returns the line of `weir explain` for a Suspension. */
export function suspensionText(item: SuspensionItem): string {
  const { name, message, createdAt, origin } = item;
  const since = createdAt === null ? '' : ` since ${createdAt}`;
  const from =
    origin.kind === 'file' ? `, from ${origin.path}` : origin.kind === 'local' ? `, only on node ${origin.node}` : '';
  return `Suspension ${name} ${authorText(item)}${since}${from}, ${endText(item)}${message === '' ? '' : `: ${message}`}`;
}

/** The columns of `weir get suspensions`. */
export const SUSPENSION_COLUMNS: readonly Column<SuspensionItem>[] = [
  { title: 'NAME', value: ({ name }) => name },
  {
    title: 'TARGET',
    value: ({ target, origin }) => `${targetText(target)}${origin.kind === 'local' ? ` on node ${origin.node}` : ''}`,
  },
  { title: 'SINCE', value: ({ createdAt }) => createdAt ?? '-' },
  { title: 'UNTIL', value: (item) => endText(item).replace(/^until /, '') },
  {
    title: 'BY',
    value: (item) =>
      item.origin.kind === 'file' && item.rule === null
        ? item.origin.path
        : toSingleLine(authorText(item).replace(/^by /, '')),
  },
  { title: 'MESSAGE', value: ({ message }) => toSingleLine(message) || '-' },
];

function endText({ until, inForce }: SuspensionItem): string {
  if (until === null) return 'until resumed';
  return inForce ? `until ${until}` : `ended ${until}`;
}

function authorText({ madeBy, rule, origin }: SuspensionItem): string {
  return suspendedByText({ origin, ...(madeBy === null ? {} : { madeBy }), ...(rule === null ? {} : { rule }) });
}
