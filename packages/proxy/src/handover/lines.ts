import type { Socket } from 'node:net';

/** As long as the list of a hundred thousand listeners. */
const MAX_LINE_CHARACTERS = 8_388_608;

/** Tells each line that arrives. A peer that sends more without an end of line is cut off. */
export function readLines(socket: Socket, onLine: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE_CHARACTERS) socket.destroy();
    for (const line of lines) if (!socket.destroyed) onLine(line);
  });
}

export function writeLine(socket: Socket, value: object): void {
  if (socket.writable) socket.write(`${JSON.stringify(value)}\n`);
}
