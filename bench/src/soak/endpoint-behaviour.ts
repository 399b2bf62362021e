// What an endpoint does with a connection. Bytes are counted by whoever holds the socket.
import type { Socket } from 'node:net';

export type EndpointBehaviour = keyof typeof behaviours | 'datagrams';

const answer = Buffer.alloc(100_000, 'answer ');
const floodBytes = 8_000_000;
/** Longer than any client stays. */
const holdMs = 8_000;

/** `headerBytes` is what was not the client's. */
export type Held = { readonly socket: Socket; headerBytes: number };

export const behaviours = {
  echo: ({ socket }: Held): void => {
    socket.pipe(socket);
  },
  'told-echo': (held: Held): void => {
    held.socket.once('readable', () => readHeader(held));
  },
  hang: ({ socket }: Held): void => {
    giveUpLater(socket);
  },
  'reset-at-once': ({ socket }: Held): void => {
    socket.resetAndDestroy();
  },
  'reset-at-request': ({ socket }: Held): void => {
    socket.once('data', () => socket.resetAndDestroy());
  },
  'reset-amid-answer': ({ socket }: Held): void => {
    socket.once('data', () => {
      socket.write(answer);
      setImmediate(() => socket.resetAndDestroy());
    });
  },
  'answer-early': ({ socket }: Held): void => {
    socket.end(answer.subarray(0, 2_000));
    socket.resume();
  },
  flood: ({ socket }: Held): void => {
    let left = floodBytes;
    const more = (): void => {
      while (left > 0) {
        left -= answer.length;
        if (!socket.write(answer)) return;
      }
      socket.end();
    };
    socket.on('drain', more);
    socket.resume();
    more();
    giveUpLater(socket);
  },
  'half-close': ({ socket }: Held): void => {
    socket.end();
    socket.resume();
  },
  'never-read': ({ socket }: Held): void => {
    socket.pause();
    giveUpLater(socket);
  },
} as const;

function giveUpLater(socket: Socket): void {
  const timer = setTimeout(() => socket.resetAndDestroy(), holdMs);
  socket.once('close', () => clearTimeout(timer));
}

const signature = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const fixedBytes = 16;
const fixedOnly = Buffer.alloc(0);

/** PROXY protocol v2, 2.2: signature, version and command, family, length; then the rest is echoed. */
function readHeader(held: Held): void {
  const { socket } = held;
  const fixed: Buffer | null = socket.read(fixedBytes);
  if (fixed === null) {
    if (!socket.readableEnded) socket.once('readable', () => readHeader(held));
    return;
  }
  if (fixed.length < fixedBytes || !fixed.subarray(0, signature.length).equals(signature) || fixed[12] !== 0x21) {
    throw new Error(`an endpoint that is to be told who comes was told ${fixed.toString('hex')}`);
  }
  readAddresses(held, fixed.readUInt16BE(14));
}

function readAddresses(held: Held, length: number): void {
  const { socket } = held;
  // Of no bytes `read` says nothing: the header of a client that had gone by then names nobody.
  const rest: Buffer | null = length === 0 ? fixedOnly : socket.read(length);
  if (rest === null) {
    if (!socket.readableEnded) socket.once('readable', () => readAddresses(held, length));
    return;
  }
  held.headerBytes = fixedBytes + length;
  socket.pipe(socket);
}
