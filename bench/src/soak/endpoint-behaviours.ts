// What an endpoint does with one connection, by the name of its behaviour. The caller counts the bytes.
import type { Socket } from 'node:net';

export type EndpointBehaviour = keyof typeof ENDPOINT_BEHAVIOURS | 'datagrams';

const RESPONSE = Buffer.alloc(100_000, 'answer ');
const FLOOD_BYTES = 8_000_000;
/** How long an endpoint holds a connection before a reset. Longer than `impatient` clients stay. */
const HOLD_MS = 8_000;

/** A connection to an endpoint. `headerBytes` is the length of the PROXY header that the proxy added. */
export type EndpointConnection = { readonly socket: Socket; headerBytes: number };

export const ENDPOINT_BEHAVIOURS = {
  echo: ({ socket }: EndpointConnection): void => {
    socket.pipe(socket);
  },
  'proxy-v2-echo': (held: EndpointConnection): void => {
    held.socket.once('readable', () => readProxyHeader(held));
  },
  hang: ({ socket }: EndpointConnection): void => {
    resetAfterHold(socket);
  },
  'reset-at-once': ({ socket }: EndpointConnection): void => {
    socket.resetAndDestroy();
  },
  'reset-at-request': ({ socket }: EndpointConnection): void => {
    socket.once('data', () => socket.resetAndDestroy());
  },
  'reset-amid-answer': ({ socket }: EndpointConnection): void => {
    socket.once('data', () => {
      socket.write(RESPONSE);
      setImmediate(() => socket.resetAndDestroy());
    });
  },
  'answer-early': ({ socket }: EndpointConnection): void => {
    socket.end(RESPONSE.subarray(0, 2_000));
    socket.resume();
  },
  flood: ({ socket }: EndpointConnection): void => {
    let left = FLOOD_BYTES;
    const more = (): void => {
      while (left > 0) {
        left -= RESPONSE.length;
        if (!socket.write(RESPONSE)) return;
      }
      socket.end();
    };
    socket.on('drain', more);
    socket.resume();
    more();
    resetAfterHold(socket);
  },
  'half-close': ({ socket }: EndpointConnection): void => {
    socket.end();
    socket.resume();
  },
  'never-read': ({ socket }: EndpointConnection): void => {
    socket.pause();
    resetAfterHold(socket);
  },
} as const;

function resetAfterHold(socket: Socket): void {
  const timer = setTimeout(() => socket.resetAndDestroy(), HOLD_MS);
  socket.once('close', () => clearTimeout(timer));
}

const PROXY_V2_SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');
const PROXY_V2_FIXED_BYTES = 16;
const NO_ADDRESSES = Buffer.alloc(0);

/** Reads a PROXY header (PROXY protocol v2, 2.2): signature, version and command, family, length, addresses. Then echoes all bytes. */
function readProxyHeader(held: EndpointConnection): void {
  const { socket } = held;
  const fixed: Buffer | null = socket.read(PROXY_V2_FIXED_BYTES);
  if (fixed === null) {
    if (!socket.readableEnded) socket.once('readable', () => readProxyHeader(held));
    return;
  }
  if (
    fixed.length < PROXY_V2_FIXED_BYTES ||
    !fixed.subarray(0, PROXY_V2_SIGNATURE.length).equals(PROXY_V2_SIGNATURE) ||
    fixed[12] !== 0x21
  ) {
    throw new Error(`expected a PROXY v2 header, but received ${fixed.toString('hex')}`);
  }
  readProxyAddresses(held, fixed.readUInt16BE(14));
}

function readProxyAddresses(held: EndpointConnection, length: number): void {
  const { socket } = held;
  // length is 0 if the client disconnected before the proxy read the client's address; `read(0)` would return null
  const rest: Buffer | null = length === 0 ? NO_ADDRESSES : socket.read(length);
  if (rest === null) {
    if (!socket.readableEnded) socket.once('readable', () => readProxyAddresses(held, length));
    return;
  }
  held.headerBytes = PROXY_V2_FIXED_BYTES + length;
  socket.pipe(socket);
}
