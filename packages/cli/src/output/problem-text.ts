import type { Colourize } from './ansi.ts';
import { toSingleLine } from './ansi.ts';

/** As much of a problem as is printed. */
export interface PrintableProblem {
  readonly code: string;
  readonly subject: string;
  readonly severity: 'error' | 'warning';
  readonly heals: boolean;
  readonly message: string;
}

/** One line per problem: a message is as long as it must be, so it does not stand in a column. */
export function problemsText(problems: readonly PrintableProblem[], paint: Colourize): string {
  return problems.map((problem) => `${problemText(problem, paint)}\n`).join('');
}

export function problemText({ code, subject, severity, message }: PrintableProblem, paint: Colourize): string {
  const word = paint(severity === 'error' ? 'red' : 'yellow', severity);
  return `${word}: ${paint('bold', toSingleLine(subject))}: ${code}: ${toSingleLine(message)}`;
}

export function resolvedProblemText(
  { code, subject }: Pick<PrintableProblem, 'code' | 'subject'>,
  paint: Colourize,
): string {
  return `${paint('green', 'gone')}: ${toSingleLine(subject)}: ${code}`;
}
