/** Our own colours (not: hidden, or black on black) and line ends are the only control characters that pass. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
const CONTROL_CHARACTERS =
  /\u001b(?!\[(?:[012]|22|3[1-5]|39)m)|[\u0000-\u0009\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g;

/** What tenants wrote (messages, names) is printed on an operator's terminal: escape sequences must not work there. */
export function stripControlCharacters(text: string): string {
  return text.replace(CONTROL_CHARACTERS, '');
}

/** The same, for what must stay in its line. */
export function toSingleLine(text: string): string {
  return stripControlCharacters(text.replace(/[\r\n\t]+/g, ' '));
}
