import type { Colourize } from './ansi.ts';
import { toSingleLine } from './ansi.ts';

/** A problem of the model or of the console's API. */
export interface PrintableProblem {
  readonly code: string;
  readonly subject: string;
  readonly severity: 'error' | 'warning';
  readonly heals: boolean;
  readonly message: string;
}

/** Returns one line per problem. The lines have no columns, because messages are long. */
export function problemsText(problems: readonly PrintableProblem[], paint: Colourize): string {
  return problems.map((problem) => `${problemText(problem, paint)}\n`).join('');
}

export function problemText({ code, subject, severity, message }: PrintableProblem, paint: Colourize): string {
  const severityText = paint(severity === 'error' ? 'red' : 'yellow', severity);
  return `${severityText}: ${paint('bold', toSingleLine(subject))}: ${code}: ${toSingleLine(message)}`;
}

export function resolvedProblemText(
  { code, subject }: Pick<PrintableProblem, 'code' | 'subject'>,
  paint: Colourize,
): string {
  return `${paint('green', 'resolved')}: ${toSingleLine(subject)}: ${code}`;
}
