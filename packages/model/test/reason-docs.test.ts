// Checks that docs/reasons.md explains every reason and every problem once, in the right section.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import {
  DEGRADED_REASONS,
  GENERAL_PROBLEM_CODES,
  PROGRAMMED_REASONS,
  REFUSAL_REASONS,
  SUSPENDED_REASONS,
} from '@weir/model';

const page = readFileSync(new URL('../../../docs/reasons.md', import.meta.url), 'utf8');

/** Returns the sections of the page by title (`##`). A section maps the title of each entry (`###`) to the text of the entry. */
function sections(): Map<string, Map<string, string>> {
  const found = new Map<string, Map<string, string>>();
  for (const part of page.split(/^## /m).slice(1)) {
    const [title = '', ...entries] = part.split(/^### /m);
    found.set(
      title.split('\n')[0] ?? '',
      new Map(
        entries.map((entry) => {
          const [name = '', ...text] = entry.split('\n');
          return [name, text.join(' ').trim()];
        }),
      ),
    );
  }
  return found;
}

test('every reason has an entry in its section, and every entry has a reason', () => {
  const known = new Set<string>([...REFUSAL_REASONS, ...PROGRAMMED_REASONS, ...DEGRADED_REASONS]);
  const programmed = new Set<string>(PROGRAMMED_REASONS);
  const expected: Record<string, readonly string[]> = {
    Accepted: ['Accepted', ...REFUSAL_REASONS],
    Programmed: PROGRAMMED_REASONS,
    // The page explains a reason of both conditions once, under Programmed.
    Degraded: DEGRADED_REASONS.filter((reason) => !programmed.has(reason)),
    Suspended: SUSPENDED_REASONS,
    'Other problems': GENERAL_PROBLEM_CODES.filter((code) => !known.has(code)),
  };
  const found = sections();
  assert.deepEqual([...found.keys()], Object.keys(expected));
  for (const [section, reasons] of Object.entries(expected)) {
    assert.deepEqual([...(found.get(section)?.keys() ?? [])].sort(), [...reasons].sort(), section);
  }
});

test('every entry explains the reason, and in a separate sentence the fix', () => {
  for (const entries of sections().values()) {
    for (const [name, text] of entries) {
      const sentences = text.split(/[.:]\s/).filter((sentence) => sentence.trim() !== '');
      assert.ok(text.split(/\s+/).length >= 8 && (sentences.length >= 2 || name === 'Accepted'), name);
    }
  }
});
