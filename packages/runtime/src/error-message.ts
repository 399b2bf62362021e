const MAX_CAUSE_DEPTH = 8;
const MAX_MESSAGE_CHARACTERS = 2_000;

/**
 * One line for humans out of anything thrown: its message and those of its causes, without stack. Never throws, never loops.
 * Control characters become spaces: a message may quote what a peer sent, and it is printed on terminals.
 */
export function errorMessage(thrown: unknown): string {
  const said: string[] = [];
  let current = thrown;
  for (let depth = 0; depth < MAX_CAUSE_DEPTH && current !== undefined && current !== null; depth += 1) {
    const message = onOneLine(messageWithoutCauses(current));
    // Many libraries put the cause's message into their own; saying it twice helps nobody.
    if (message !== '' && !said.some((earlier) => earlier.includes(message))) said.push(message);
    current = current instanceof Error ? current.cause : undefined;
  }
  const line = said.join(': ') || 'unknown error';
  return line.length <= MAX_MESSAGE_CHARACTERS ? line : `${line.slice(0, MAX_MESSAGE_CHARACTERS - 1)}…`;
}

function messageWithoutCauses(thrown: unknown): string {
  // `net.connect` to a name with several addresses throws one of these, with an empty message.
  if (thrown instanceof AggregateError && thrown.message === '') {
    return [
      ...new Set(thrown.errors.slice(0, MAX_CAUSE_DEPTH).map((error: unknown) => messageWithoutCauses(error))),
    ].join(', ');
  }
  if (thrown instanceof Error) return thrown.message || errorCode(thrown) || thrown.name;
  return typeof thrown === 'string' ? thrown : describeValue(thrown);
}

function errorCode(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function describeValue(thrown: unknown): string {
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
