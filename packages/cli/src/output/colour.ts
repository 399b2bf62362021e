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
