import type { Paint } from './colour.ts';
import { onOneLine } from './printable.ts';

/** As much of a problem as is printed. */
export interface PrintedProblem {
  readonly code: string;
  readonly subject: string;
  readonly severity: 'error' | 'warning';
  readonly heals: boolean;
  readonly message: string;
}

/** One line per problem: a message is as long as it must be, so it does not stand in a column. */
export function problemsText(problems: readonly PrintedProblem[], paint: Paint): string {
  return problems.map((problem) => `${problemText(problem, paint)}\n`).join('');
}

export function problemText({ code, subject, severity, message }: PrintedProblem, paint: Paint): string {
  const word = paint(severity === 'error' ? 'red' : 'yellow', severity);
  return `${word}: ${paint('bold', onOneLine(subject))}: ${code}: ${onOneLine(message)}`;
}

export function goneText({ code, subject }: Pick<PrintedProblem, 'code' | 'subject'>, paint: Paint): string {
  return `${paint('green', 'gone')}: ${onOneLine(subject)}: ${code}`;
}
