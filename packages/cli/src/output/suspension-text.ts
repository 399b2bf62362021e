// Text that says who suspended what, when and why.
import type { SuspensionAuditItem, SuspensionItem } from '@weir/console';
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
  { title: 'BY', value: authorName },
  { title: 'MESSAGE', value: ({ message }) => toSingleLine(message) || '-' },
];

/** The columns of `weir get suspensions --past`. */
export const PAST_SUSPENSION_COLUMNS: readonly Column<SuspensionAuditItem>[] = [
  { title: 'TIME', value: ({ at }) => at },
  { title: 'ACTION', value: ({ action, why }) => (why === null ? action : `${action} (${why})`) },
  { title: 'TARGET', value: ({ suspension }) => targetText(suspension.target) },
  {
    title: 'BY',
    value: ({ action, releasedBy, suspension }) =>
      action === 'Released' ? (releasedBy ?? '-') : authorName(suspension),
  },
  { title: 'UNTIL', value: ({ suspension }) => suspension.until ?? '-' },
  { title: 'MESSAGE', value: ({ suspension }) => toSingleLine(suspension.message) || '-' },
];

function endText({ until, inForce }: SuspensionItem): string {
  if (until === null) return 'until resumed';
  return inForce ? `until ${until}` : `ended ${until}`;
}

type Author = Pick<SuspensionItem, 'madeBy' | 'rule' | 'origin'>;

/** Returns who or what made the Suspension, or the file that defines it. */
function authorName(author: Author): string {
  const { origin, rule } = author;
  return origin.kind === 'file' && rule === null ? origin.path : toSingleLine(authorText(author).replace(/^by /, ''));
}

function authorText({ madeBy, rule, origin }: Author): string {
  return suspendedByText({ origin, ...(madeBy === null ? {} : { madeBy }), ...(rule === null ? {} : { rule }) });
}
