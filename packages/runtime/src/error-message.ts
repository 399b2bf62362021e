const LONGEST_CHAIN = 8;
const LONGEST_MESSAGE = 2_000;

/**
 * One line for humans out of anything thrown: its message and those of its causes, without stack. Never throws, never loops.
 * Control characters become spaces: a message may quote what a peer sent, and it is printed on terminals.
 */
export function errorMessage(thrown: unknown): string {
  const said: string[] = [];
  let current = thrown;
  for (let depth = 0; depth < LONGEST_CHAIN && current !== undefined && current !== null; depth += 1) {
    const message = onOneLine(ownMessage(current));
    // Many libraries put the cause's message into their own; saying it twice helps nobody.
    if (message !== '' && !said.some((earlier) => earlier.includes(message))) said.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  const line = said.join(': ') || 'unknown error';
  return line.length <= LONGEST_MESSAGE ? line : `${line.slice(0, LONGEST_MESSAGE - 1)}…`;
}

function ownMessage(thrown: unknown): string {
  // `net.connect` to a name with several addresses throws one of these, with an empty message.
  if (thrown instanceof AggregateError && thrown.message === '') {
    return [...new Set(thrown.errors.slice(0, LONGEST_CHAIN).map((error: unknown) => ownMessage(error)))].join(', ');
  }
  if (thrown instanceof Error) return thrown.message || errorCode(thrown) || thrown.name;
  return typeof thrown === 'string' ? thrown : describe(thrown);
}

function errorCode(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function describe(thrown: unknown): string {
  if (typeof thrown !== 'object' || thrown === null) return String(thrown);
  if ('message' in thrown && typeof thrown.message === 'string') return thrown.message;
  try {
    return JSON.stringify(thrown) ?? 'unknown error';
  } catch {
    return 'unknown error';
  }
}

function onOneLine(text: string): string {
  return text.replace(/[\p{Cc}\s]+/gu, ' ').trim();
}
