// Calls the handler of a stream. An exception that the handler throws ends only its own connection.
import type { StreamEvents, TcpStream } from '../tcp-transport.ts';

/** Passes bytes to the handler. `events` is undefined if the stream has no handler. */
export function emitData(stream: TcpStream, events: StreamEvents | undefined, bytes: Uint8Array): void {
  try {
    events?.onData(stream, bytes);
  } catch (thrown) {
    events?.onThrow(stream, thrown);
  }
}

export function emitEvent(
  stream: TcpStream,
  events: StreamEvents | undefined,
  event: 'onConnect' | 'onEnd' | 'onDrain',
): void {
  try {
    // Not `events[event]`, because V8 uses a slow dictionary lookup for a varying name.
    if (event === 'onEnd') events?.onEnd(stream);
    else if (event === 'onDrain') events?.onDrain(stream);
    else events?.onConnect(stream);
  } catch (thrown) {
    events?.onThrow(stream, thrown);
  }
}
