import { time } from './format.js';

// Text that says which target a Suspension cuts off, since when, until when, and who made the Suspension.

export function targetText(target) {
  if (target.type === 'Tenant') return `tenant ${target.tenant}`;
  if (target.type === 'Namespace') return `namespace ${target.namespace}`;
  return `Service ${target.namespace}/${target.service}`;
}

/** Returns the message with end, begin and author in parentheses. */
export function detailsText({ message, until, origin, createdAt, ...author }) {
  const end = until === null ? 'until resumed' : `until ${time(until)}`;
  const since = createdAt === null ? '' : `since ${time(createdAt)} `;
  const where = origin.kind === 'local' ? `, only on node ${origin.node}; resume it there` : '';
  const from =
    origin.kind === 'file' ? `defined in ${origin.path}, delete it there` : `${since}by ${authorText(author)}${where}`;
  return `${message} (${end}; ${from})`;
}

/** Returns the rule with its figures, or the user who made the Suspension. */
export function authorText({ madeBy, rule }) {
  return rule === null ? (madeBy ?? 'an unknown user') : `rule ${rule.replace(/^rule /, '')}`;
}
