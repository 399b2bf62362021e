// Checks that the pages of docs are easy to read: short lines in the source, and not too many words on a page.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listPages, readPage } from '../src/docs/markdown.ts';

const MAX_LINE_LENGTH = 140;
/** Words outside of tables and code, because a reference is a table that readers do not read from the beginning to the end. */
const MAX_WORDS = 1_250;
/** Has one short section for each reason, to which messages and other pages link. */
const REFERENCE = 'docs/reasons.md';

/** Returns the lines outside of tables and code blocks. */
function proseOf(page: string): readonly { readonly text: string; readonly line: number }[] {
  let isCode = false;
  return page.split('\n').flatMap((text, index) => {
    const isFence = /^ *```/.test(text);
    if (isFence) isCode = !isCode;
    return isCode || isFence || /^ *\|/.test(text) ? [] : [{ text, line: index + 1 }];
  });
}

const wordsIn = (text: string): number => text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
const pages = listPages().filter((path) => path === 'README.md' || /^docs\/[^/]+\.md$/.test(path));

test(`no line of a page has more than ${MAX_LINE_LENGTH} characters outside of tables and code`, () => {
  const long = pages.flatMap((path) =>
    proseOf(readPage(path)).flatMap(({ text, line }) => (text.length > MAX_LINE_LENGTH ? [`${path}:${line}`] : [])),
  );
  assert.deepEqual(long, []);
});

test(`no page has more than ${MAX_WORDS} words outside of tables and code`, () => {
  const counts = pages.map((path) => {
    const words = proseOf(readPage(path)).reduce((sum, { text }) => sum + wordsIn(text), 0);
    return { path, words };
  });
  assert.deepEqual(
    counts.filter(({ path, words }) => words > MAX_WORDS && path !== REFERENCE),
    [],
  );
});
