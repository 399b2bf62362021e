// Calls the owner of a stream. An exception that the owner throws ends only its own connection. The owner may have given the stream to
// another owner before, which then handles the exception.
import type { StreamEvents, TcpStream } from '../tcp-transport.ts';

interface OwnedStream extends TcpStream {
  /** The event handlers of the owner. Undefined if the stream has no owner. */
  readonly events: StreamEvents | undefined;
}

export function emitData(stream: OwnedStream, bytes: Uint8Array): void {
  try {
    stream.events?.onData(stream, bytes);
  } catch (thrown) {
    stream.events?.onThrow(stream, thrown);
  }
}

export function emitEvent(stream: OwnedStream, event: 'onConnect' | 'onEnd' | 'onDrain'): void {
  try {
    // Not `events[event]`, because V8 uses a slow dictionary lookup for a varying name.
    if (event === 'onEnd') stream.events?.onEnd(stream);
    else if (event === 'onDrain') stream.events?.onDrain(stream);
    else stream.events?.onConnect(stream);
  } catch (thrown) {
    stream.events?.onThrow(stream, thrown);
  }
}
