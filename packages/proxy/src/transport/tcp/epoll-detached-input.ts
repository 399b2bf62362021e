import { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { countSocket } from '../../limits/descriptor-count.ts';
import { type EventHandler, eventLoop } from '../event-loop.ts';
import { EPOLLERR, EPOLLHUP, EPOLLIN, EPOLLRDHUP } from '../syscalls/layouts.ts';
import { receive, releaseDescriptor } from '../syscalls/sockets.ts';
import type { DetachedInput, DetachedStream } from '../tcp-transport.ts';
import { bytesRead, NARROW_READ_BYTES, readMemory } from './read-memory.ts';

const INPUT_EVENTS = EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
const EAGAIN = -11;

/** Gives a descriptor of the event loop to a socket of Node. The caller reads the returned input, not the socket. */
export function detachDescriptor(descriptor: number, options: { readonly isReadable: boolean }): DetachedStream {
  const input = new EpollDetachedInput(descriptor, options);
  eventLoop.handOver(descriptor, input);
  releaseDescriptor(descriptor);
  const socket = new Socket({ fd: descriptor, allowHalfOpen: true, readable: true, writable: true });
  countSocket(socket);
  return { socket, input };
}

/** The input of a detached stream. Has taken over the registration of the stream's descriptor, which is edge-triggered. */
class EpollDetachedInput implements DetachedInput, EventHandler {
  readonly #descriptor: number;
  /** Whether a read may return something other than EAGAIN. */
  #isReadable: boolean;
  #onReadable: (() => void) | undefined;

  constructor(descriptor: number, { isReadable }: { readonly isReadable: boolean }) {
    this.#descriptor = descriptor;
    this.#isReadable = isReadable;
  }

  watch(onReadable: () => void): void {
    this.#onReadable = onReadable;
    if (this.#isReadable) onReadable();
  }

  onEvents(events: number): void {
    if ((events & INPUT_EVENTS) === 0) return;
    this.#isReadable = true;
    this.#onReadable?.();
  }

  read(): Uint8Array | string | undefined {
    const count = receive(this.#descriptor, readMemory, NARROW_READ_BYTES);
    this.#isReadable = count !== EAGAIN;
    if (count === EAGAIN) return undefined;
    if (count <= 0) return count === 0 ? 'ECONNRESET' : getSystemErrorName(count);
    return bytesRead(count);
  }

  close(): void {
    this.#onReadable = undefined;
    eventLoop.release(this.#descriptor, this);
  }
}
