import { inspect } from 'node:util';

const REDACTED = '[redacted]';

/** A password, token or key. Logs, JSON and error messages print `[redacted]` instead of the text. */
export class Secret {
  static {
    // `isolatedDeclarations` does not allow a method with a computed name.
    Object.defineProperty(Secret.prototype, inspect.custom, { value: () => REDACTED });
  }

  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The plain text. Call this only where the text is sent to the peer that needs it. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return REDACTED;
  }

  toJSON(): string {
    return REDACTED;
  }
}
