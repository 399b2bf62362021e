import { styleText } from 'node:util';
import type { ServiceView } from '@weir/model';

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'magenta';
/** Colours a text, or returns the text unchanged if colours are off. */
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

/** Returns the state of a Service. A Service that is served, but not as it should be, is yellow, for example without a ready endpoint. */
export function serviceStateText(
  paint: Colourize,
  { state, conditions }: Pick<ServiceView, 'state' | 'conditions'>,
): string {
  const isDegraded = conditions.some(({ type, status }) =>
    type === 'Degraded' ? status === 'True' : status === 'False',
  );
  return state === 'Programmed' && isDegraded ? paint('yellow', state) : stateText(paint, state);
}

/**
 * Matches the control characters that could hide or reverse text: all except line feeds and the colour sequences of `Colourize`. The
 * characters from U+202A on change the direction of text.
 */
const CONTROL_CHARACTERS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the expression is about control characters
  /\u001b(?!\[(?:[012]|22|3[1-5]|39)m)|[\u0000-\u0009\u000b-\u001a\u001c-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Removes escape sequences from text that a tenant wrote, so that the text cannot manipulate an operator's terminal. */
export function stripControlCharacters(text: string): string {
  return text.replace(CONTROL_CHARACTERS, '');
}

/** Removes escape sequences, and replaces line breaks and tabs by spaces. */
export function toSingleLine(text: string): string {
  return stripControlCharacters(text.replace(/[\r\n\t]+/g, ' '));
}
