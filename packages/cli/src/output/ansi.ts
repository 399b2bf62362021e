import { styleText } from 'node:util';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'magenta';
/** Colours a text, or leaves it as it is. */
export type Colourize = (style: Style, text: string) => string;

export function colourizeFor(colour: boolean): Colourize {
  return colour ? (style, text) => styleText(style, text, { validateStream: false }) : (_style, text) => text;
}

const STATE_STYLES: Readonly<Record<string, Style>> = {
  Programmed: 'green',
  Serving: 'green',
  Pending: 'yellow',
  Draining: 'yellow',
  Refused: 'red',
  Silent: 'red',
  Stray: 'red',
  Suspended: 'magenta',
};

export function stateText(paint: Colourize, state: string): string {
  const style = STATE_STYLES[state];
  return style === undefined ? state : paint(style, state);
}

/** Our own colours (not: hidden, or black on black) and line ends are the only control characters that pass. */
const CONTROL_CHARACTERS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression is about control characters
  /\u001b(?!\[(?:[012]|22|3[1-5]|39)m)|[\u0000-\u0009\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** What tenants wrote (messages, names) is printed on an operator's terminal: escape sequences must not work there. */
export function stripControlCharacters(text: string): string {
  return text.replace(CONTROL_CHARACTERS, '');
}

/** The same, for what must stay in its line. */
export function toSingleLine(text: string): string {
  return stripControlCharacters(text.replace(/[\r\n\t]+/g, ' '));
}
