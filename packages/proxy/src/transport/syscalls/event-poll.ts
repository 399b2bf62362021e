// epoll(7), and the epoll descriptor of libuv's loop.
import { strict as assert } from 'node:assert';
import { checked, integer, link, type Structure, structure, UNUSED, uvLoop } from './ffi.ts';
import { EPOLL_CLOEXEC, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, epollEventLayoutFor } from './layouts.ts';
import { closeDescriptor, opened } from './sockets.ts';

const {
  epoll_create1: epollCreate1,
  epoll_ctl: epollCtl,
  epoll_wait: epollWait,
  uv_backend_fd: uvBackendFd,
  uv_backend_timeout: uvBackendTimeout,
  uv_loop_alive: uvLoopAlive,
} = link({
  epoll_create1: 2,
  epoll_ctl: 4,
  epoll_wait: 4,
  uv_backend_fd: 2,
  uv_backend_timeout: 2,
  uv_loop_alive: 2,
});

const layout = epollEventLayoutFor(process.arch);

/** The maximum number of events that one `EventPoll.wait` receives. */
export const MAX_EVENTS = 256;

/** An epoll instance, see epoll(7). The data of an event is the descriptor and the generation of its registration. */
export class EventPoll {
  readonly #descriptor: number;
  readonly #registration = structure(16);
  readonly #events: Structure;
  readonly #eventWords: number;
  readonly #dataWord: number;

  constructor() {
    assert(layout !== undefined, `no layout of epoll_event for ${process.arch}`);
    this.#events = structure(MAX_EVENTS * layout.bytes);
    this.#eventWords = layout.bytes / 4;
    this.#dataWord = layout.dataOffset / 4;
    this.#descriptor = opened(epollCreate1(integer(EPOLL_CLOEXEC), UNUSED));
    assert(this.#descriptor >= 0, 'epoll_create1 failed');
  }

  add(descriptor: number, events: number, generation: number): number {
    return this.#control(EPOLL_CTL_ADD, descriptor, events, generation);
  }

  modify(descriptor: number, events: number, generation: number): number {
    return this.#control(EPOLL_CTL_MOD, descriptor, events, generation);
  }

  delete(descriptor: number): number {
    return this.#control(EPOLL_CTL_DEL, descriptor, 0, 0);
  }

  /** epoll_wait(2). Returns the number of events, which the three methods below read, or a negative errno. */
  wait(timeoutMs: number): number {
    return checked(epollWait(integer(this.#descriptor), this.#events.pointer, integer(MAX_EVENTS), integer(timeoutMs)));
  }

  eventsAt(index: number): number {
    return this.#events.words[index * this.#eventWords] as number;
  }

  descriptorAt(index: number): number {
    return this.#events.words[index * this.#eventWords + this.#dataWord] as number;
  }

  generationAt(index: number): number {
    return this.#events.words[index * this.#eventWords + this.#dataWord + 1] as number;
  }

  close(): void {
    closeDescriptor(this.#descriptor);
  }

  #control(operation: number, descriptor: number, events: number, generation: number): number {
    const { words: registration, pointer } = this.#registration;
    registration[0] = events;
    registration[this.#dataWord] = descriptor;
    registration[this.#dataWord + 1] = generation;
    return checked(epollCtl(integer(this.#descriptor), integer(operation), integer(descriptor), pointer));
  }
}

/** Returns the epoll descriptor of this thread's libuv loop: `uv_backend_fd`. */
export function libuvDescriptor(): number {
  return uvBackendFd(uvLoop, UNUSED);
}

/** Whether libuv has a referenced handle or a request, or work that its next iteration completes: `uv_loop_alive`. */
export function isLibuvAlive(): boolean {
  return uvLoopAlive(uvLoop, UNUSED) !== 0;
}

/** Returns the milliseconds until libuv's next timer, 0 if libuv asks for no wait, or -1 if no timer is set: `uv_backend_timeout`. */
export function libuvTimeoutMs(): number {
  return uvBackendTimeout(uvLoop, UNUSED);
}
