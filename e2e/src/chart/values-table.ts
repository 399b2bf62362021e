import type { ChartValue } from './values-tree.ts';

/** Markdown: a table of what stands alone, then a heading and a table for each section of the first level. */
export function valuesTables(values: readonly ChartValue[]): string {
  const alone = values.filter(({ children }) => children === undefined);
  const sections = values.flatMap((each) =>
    each.children === undefined
      ? []
      : [`### ${each.key}`, ...paragraphs(each), markdownTable(flattenValues(each.children))],
  );
  return [...(alone.length === 0 ? [] : [markdownTable(alone)]), ...sections].join('\n\n');
}

const flattenValues = (values: readonly ChartValue[]): readonly ChartValue[] =>
  values.flatMap((each) => (each.children === undefined ? [each] : [each, ...flattenValues(each.children)]));

const paragraphs = ({ text }: ChartValue): readonly string[] => (text === '' ? [] : text.split('\n'));

function markdownTable(values: readonly ChartValue[]): string {
  // a section within a section has a line only for what is said of all of it
  const rows = values.filter(({ text, children }) => children === undefined || text !== '').map(tableRow);
  return ['| value | default | meaning |', '|---|---|---|', ...rows].join('\n');
}

function tableRow(value: ChartValue): string {
  const shown = value.children === undefined ? codeSpan(defaultText(value.default)) : '';
  const choices = value.choices.map(({ word, meaning }) => `${codeSpan(word === '' ? '""' : word)}: ${meaning}`);
  const meaning = [...paragraphs(value), ...choices].join('<br>').replaceAll('|', '\\|');
  return `| \`${value.path}\` | ${shown} | ${meaning} |`;
}

function defaultText(value: unknown): string {
  return typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}

const codeSpan = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
