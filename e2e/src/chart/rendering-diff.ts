import { diff } from 'node:util';
import { parse } from 'yaml';
import type { Installation, Manifest } from './helm.ts';

/** How many unchanged lines surround a change. */
const CONTEXT_LINES = 1;

/** A line of both documents (0), of the base document only (1) or of the new document only (-1), as node:util returns them. */
type Edit = readonly [operation: number, line: string];

/**
 * Lists how a rendering differs from `base`; both are lists of YAML documents in rendering order. Documents are matched by kind,
 * namespace and name. Base and diff together determine the rendering completely: a change names its line in the base document, an
 * added document the document that it follows, and documents that are not listed are equal and in the same order.
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

/** A document of the default release under the names of another release: a diff then shows the effect of values, not of names. */
export function renameRelease(document: string, { release, namespace }: Installation): string {
  const prefix = release.includes('weir') ? release : `${release}-weir`;
  // `weir-` after a word and a slash is part of an image, after `value:` a Redis user: neither depends on the release
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

/** Each hunk: `@@ line in the base document, path of the first change`, then lines that begin with a space, `-` or `+`. */
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

/** Without the empty text after the last line break. */
function linesOf(document: string): string[] {
  return document === '' ? [] : document.replace(/\n$/, '').split('\n');
}

/** The keys around the first change at or after `start`: `spec.containers[proxy].env`. A list item is named by its first value. */
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
