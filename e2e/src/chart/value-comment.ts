import { parse } from 'yaml';
import { NAMED_TYPES } from './named-types.ts';

/** A word that a value may be, and what it does. */
export interface Choice {
  readonly word: string;
  readonly meaning: string;
}

/** What stands above a value in values.yaml. */
export interface ValueComment {
  /** Without line breaks, but between paragraphs. */
  readonly text: string;
  readonly choices: readonly Choice[];
  /** Of the `@schema` line: what is laid over the schema that follows from the default. */
  readonly schema: object;
}

const CHOICE = /^ {3,}(\S+) {2,}(\S.*)$/;
const CONTINUATION = /^ {5,}(\S.*)$/;
const SCHEMA = /^\s*@schema (.+)$/;

/** `comment` is what the YAML library says of it: its lines without the `#`, blank lines of the file as empty ones. */
export function parseValueComment(comment: string): ValueComment {
  const [own = ''] = comment.split('\n\n').slice(-1);
  const paragraphs: string[] = [''];
  const choices: { word: string; meaning: string }[] = [];
  let schema: object = {};
  for (const line of own.split('\n')) {
    const [, overlay] = SCHEMA.exec(line) ?? [];
    const [, word, meaning] = CHOICE.exec(line) ?? [];
    const [, further] = CONTINUATION.exec(line) ?? [];
    const last = choices.at(-1);
    if (overlay !== undefined) schema = schemaFromAnnotation(overlay);
    else if (word !== undefined && meaning !== undefined) choices.push({ word: word === '""' ? '' : word, meaning });
    else if (last !== undefined && further !== undefined) last.meaning += ` ${further}`;
    else if (line.trim() === '') paragraphs.push('');
    else paragraphs.push(`${paragraphs.pop()} ${line.trim()}`.trim());
  }
  return { text: paragraphs.filter((each) => each !== '').join('\n'), choices, schema };
}

function schemaFromAnnotation(overlay: string): object {
  if (overlay.startsWith('{')) return parse(overlay) as object;
  const named = NAMED_TYPES[overlay];
  if (named === undefined)
    throw new Error(
      `@schema ${overlay}: there is no such type; use a map, or one of ${Object.keys(NAMED_TYPES).join(', ')}`,
    );
  return named;
}
