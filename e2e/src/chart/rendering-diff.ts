import { diff } from 'node:util';
import { parse } from 'yaml';
import type { Installation, Manifest } from './helm.ts';

/** How many unchanged lines are shown before and after a change. */
const CONTEXT_LINES = 1;

/** A line of both documents (0), only of the base document (1) or only of the new document (-1), as `diff` of node:util returns it. */
type Edit = readonly [operation: number, line: string];

/**
 * Describes how a rendering differs from `base`. Both arguments are lists of YAML documents in rendering order. Documents are matched by
 * kind, namespace and name. Base and description determine the rendering completely: a change names its line in the base document, an added
 * document names the document before it, and unlisted documents are equal and in the same order.
 */
export function renderingDiff(base: readonly string[], rendering: readonly string[]): string {
  const [baseNames, names] = [base.map(documentName), rendering.map(documentName)];
  const sections: string[] = [];
  let [baseIndex, index] = [0, 0];
  for (const [operation, name] of diff(baseNames, names)) {
    const [before = '', after = ''] = [base[baseIndex], rendering[index]];
    if (operation === 0 && before !== after) sections.push(`changed ${name}\n${changes(before, after)}`);
    if (operation > 0) sections.push(`removed ${name}\n`);
    if (operation < 0) sections.push(`added ${name}, after ${names[index - 1] ?? 'nothing'}\n${changes('', after)}`);
    if (operation >= 0) baseIndex++;
    if (operation <= 0) index++;
  }
  return sections.join('\n');
}

/** Renames the default release to another release in a document, so that a diff shows only the effects of values. */
export function renameRelease(document: string, { release, namespace }: Installation): string {
  const prefix = release.includes('weir') ? release : `${release}-weir`;
  // Keeps `weir-` after a word and a slash (part of an image) and after `value:` (a Redis user). Neither depends on the release.
  return document.replaceAll(/\bweir-system\b|(?<=instance: )weir$|(?<![\w-]|\w\/|value: )weir-/gm, (name) => {
    if (name === 'weir-system') return namespace;
    return name === 'weir' ? release : `${prefix}-`;
  });
}

function documentName(document: string): string {
  const { kind, metadata } = parse(document) as Manifest;
  return metadata.namespace === undefined
    ? `${kind} ${metadata.name}`
    : `${kind} ${metadata.namespace}/${metadata.name}`;
}

/**
 * Returns the hunks of a diff. Each hunk begins with `@@ line in the base document, path of the first change`. Its other lines begin with a
 * space, `-` or `+`.
 */
function changes(before: string, after: string): string {
  const edits: readonly Edit[] = diff(linesOf(before), linesOf(after));
  const isNear = (index: number): boolean =>
    edits.slice(Math.max(0, index - CONTEXT_LINES), index + CONTEXT_LINES + 1).some(([operation]) => operation !== 0);
  const lines: string[] = [];
  let baseLine = 1;
  let inHunk = false;
  for (const [index, [operation, line]] of edits.entries()) {
    const near = isNear(index);
    if (near && !inHunk && before !== '') lines.push(`@@ ${baseLine} ${yamlPath(edits, index)}`.trimEnd());
    if (near) lines.push(`${operation === 0 ? ' ' : operation > 0 ? '-' : '+'}${line}`);
    inHunk = near;
    if (operation >= 0) baseLine++;
  }
  return `${lines.join('\n')}\n`;
}

/** Splits a document into lines, without the empty text after the last line break. */
function linesOf(document: string): string[] {
  return document === '' ? [] : document.replace(/\n$/, '').split('\n');
}

/**
 * Returns the path of the first change at or after `start`, such as `spec.containers[proxy].env`. The path names a list item by its first
 * value.
 */
function yamlPath(edits: readonly Edit[], start: number): string {
  const changed = edits.findIndex(([operation], index) => index >= start && operation !== 0);
  const [own = 0, line = ''] = edits[changed] ?? [];
  let path = '';
  let indentation = line.search(/\S/);
  for (const [operation, text] of edits.slice(0, changed).reverse()) {
    const [, spaces = '', dash, key, value] = /^( *)(- )?([\w./-]+):(?: (.*))?$/.exec(text) ?? [];
    if (operation === -own || key === undefined || spaces.length >= indentation) continue;
    path = dash === undefined ? `.${key}${path}` : `[${value ?? key}]${path}`;
    indentation = spaces.length;
  }
  return path.replace('.', '');
}
