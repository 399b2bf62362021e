// The grammar of annotation values, as data. The model parses annotations by this grammar. A generated file of the chart
// (charts/weir/annotation-grammar.yaml) gives the grammar to the admission policy. Patterns use only syntax that both JavaScript and RE2
// support.
import { DURATION_PATTERN, formatDuration, parseDuration } from '../duration.ts';
import { parseQuantity } from './quantity.ts';
import type { ServiceSettings } from './service-settings.ts';

/** The grammar of one annotation. `expected` completes the message "is not allowed; use …". */
export type AnnotationGrammar =
  | { readonly kind: 'one-of'; readonly values: readonly string[]; readonly expected: string }
  | {
      readonly kind: 'duration';
      readonly pattern: string;
      readonly minMs: number;
      readonly maxMs: number;
      readonly expected: string;
    }
  | { readonly kind: 'integer'; readonly min: number; readonly max: number; readonly expected: string }
  | { readonly kind: 'quantity'; readonly maxLength: number; readonly expected: string }
  | { readonly kind: 'pattern'; readonly pattern: string; readonly maxLength: number; readonly expected: string }
  | {
      readonly kind: 'hosts';
      readonly pattern: string;
      readonly forbiddenPattern: string;
      readonly maxLength: number;
      readonly maxCount: number;
      readonly expected: string;
    }
  | {
      readonly kind: 'path-prefix';
      readonly pattern: string;
      readonly forbiddenPattern: string;
      readonly maxLength: number;
      readonly expected: string;
    }
  | { readonly kind: 'ports' };

/**
 * Parses the value of an annotation, given the settings parsed so far. Returns the settings to change, or an error message that continues
 * after the value.
 */
export type ParseAnnotation = (value: string, settings: ServiceSettings) => Partial<ServiceSettings> | string;

export interface Annotation {
  readonly grammar: AnnotationGrammar;
  readonly parse: ParseAnnotation;
}

/** Returns the settings that a parsed value changes. */
type Apply<T> = (value: T, settings: ServiceSettings) => Partial<ServiceSettings>;

export function oneOfAnnotation<T extends string>(values: readonly T[], apply: Apply<T>): Annotation {
  const grammar = { kind: 'one-of', values, expected: `one of ${values.join(', ')}` } as const;
  return withGrammar(grammar, (text) => values.find((value) => value === text), apply);
}

export function durationAnnotation(
  { minMs = 1, maxMs, expected }: { readonly minMs?: number; readonly maxMs: number; readonly expected?: string },
  apply: Apply<number>,
): Annotation {
  const range = `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}, such as 5s or 1m30s`;
  const grammar = { kind: 'duration', pattern: DURATION_PATTERN, minMs, maxMs, expected: expected ?? range } as const;
  return withGrammar(
    grammar,
    (text) => {
      const ms = parseDuration(text);
      return ms !== undefined && ms >= minMs && ms <= maxMs ? ms : undefined;
    },
    apply,
  );
}

/** An annotation whose value is a whole number of at most two digits. */
export function integerAnnotation(
  { min, max }: { readonly min: number; readonly max: number },
  apply: Apply<number>,
): Annotation {
  const grammar = { kind: 'integer', min, max, expected: `a whole number from ${min} to ${max}` } as const;
  return withGrammar(
    grammar,
    (text) => {
      const count = /^[0-9]{1,2}$/.test(text) ? Number(text) : Number.NaN;
      return count >= min && count <= max ? count : undefined;
    },
    apply,
  );
}

/** The maximum number of characters of a quantity. A longer text is not parsed. */
const MAX_QUANTITY_LENGTH = 40;

/** An annotation whose value is a whole number, written as a Kubernetes quantity. */
export function quantity(example: string, apply: Apply<number>): Annotation {
  const grammar = {
    kind: 'quantity',
    maxLength: MAX_QUANTITY_LENGTH,
    expected: `a whole number of ${example}`,
  } as const;
  return withGrammar(
    grammar,
    (text) => {
      const parsed = text.length > MAX_QUANTITY_LENGTH ? undefined : parseQuantity(text);
      return parsed?.kind === 'whole' ? parsed.value : undefined;
    },
    apply,
  );
}

export function pattern(
  rule: { readonly pattern: string; readonly maxLength: number; readonly expected: string },
  apply: Apply<string>,
): Annotation {
  const grammar = { kind: 'pattern', ...rule } as const;
  const regExp = new RegExp(rule.pattern);
  return withGrammar(grammar, (text) => (text.length <= rule.maxLength && regExp.test(text) ? text : undefined), apply);
}

function withGrammar<T>(
  grammar: AnnotationGrammar & { readonly expected: string },
  parse: (text: string) => T | undefined,
  apply: Apply<T>,
): Annotation {
  return {
    grammar,
    parse: (text, settings) => {
      const value = parse(text);
      return value === undefined ? notAllowed(grammar) : apply(value, settings);
    },
  };
}

/** Returns the error message for a value that does not match its grammar. The message continues after the value. */
function notAllowed({ expected }: { readonly expected: string }): string {
  return `is not allowed; use ${expected}`;
}
