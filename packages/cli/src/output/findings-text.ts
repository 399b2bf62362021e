import { CHECK_CODES, type Finding, type Severity } from '../doctor/finding.ts';
import { type Colourize, colourizeFor } from './colour.ts';
import { toSingleLine } from './printable.ts';

const SEVERITY_STYLES = { ok: 'green', warning: 'yellow', error: 'red' } as const;
const SEVERITY_WIDTH = 'warning'.length;
const CODE_WIDTH = Math.max(...CHECK_CODES.map((code) => code.length));

/** One line of each finding (a message is as long as it must be, so nothing stands right of it), and how many there are of each. */
export function findingsText(findings: readonly Finding[], colour: boolean): string {
  const paint = colourizeFor(colour);
  return `${findings.map((finding) => `${findingLine(finding, paint)}\n`).join('')}\n${findingsSummary(findings)}\n`;
}

function findingLine({ code, severity, subject, message }: Finding, paint: Colourize): string {
  const word = paint(SEVERITY_STYLES[severity], severity) + ' '.repeat(SEVERITY_WIDTH - severity.length);
  return `${word}  ${code.padEnd(CODE_WIDTH)}  ${paint('bold', toSingleLine(subject))}: ${toSingleLine(message)}`;
}

function findingsSummary(findings: readonly Finding[]): string {
  const count = (severity: Severity): number => findings.filter((finding) => finding.severity === severity).length;
  return `${findings.length} checks: ${count('ok')} ok, ${count('warning')} warning, ${count('error')} error`;
}
