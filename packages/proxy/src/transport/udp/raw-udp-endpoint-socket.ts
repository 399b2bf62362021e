import { getSystemErrorName } from 'node:util';
import { descriptorCeiling } from '../../limits/descriptor-limit.ts';
import type { SocketAddress } from '../tcp-transport.ts';
import type { UdpEndpointSocket, UdpEndpointSocketEvents } from '../udp-transport.ts';
import { requireRawUdpBinding, type SendRequest, type UdpHandle } from './raw-udp-binding.ts';

const { newHandle } = requireRawUdpBinding();
const ceiling = descriptorCeiling();

export function connectRawUdp(
  { address, port }: SocketAddress,
  events: UdpEndpointSocketEvents,
): UdpEndpointSocket | undefined {
  const handle = newHandle();
  const connected = address.includes(':') ? handle.connect6(address, port) : handle.connect(address, port);
  if (connected === 0 && handle.fd < ceiling) return new RawUdpEndpointSocket(handle, events);
  handle.close();
  return undefined;
}

class RawUdpEndpointSocket implements UdpEndpointSocket, PendingSend {
  readonly #handle: UdpHandle;
  readonly #events: UdpEndpointSocketEvents;
  #isWaiting = false;
  #isClosed = false;

  constructor(handle: UdpHandle, events: UdpEndpointSocketEvents) {
    this.#handle = handle;
    this.#events = events;
    handle.owner = this;
    handle.onmessage = onMessage;
    handle.onerror = onError;
    handle.recvStart();
  }

  send(bytes: Uint8Array): void {
    if (this.#isClosed || this.#isWaiting) return;
    const { request, list } = reusable;
    list[0] = bytes;
    const result = this.#handle.send(request, list, 1, true);
    if (result < 0) this.#emitError(result, bytes);
    else if (result === 0) {
      this.#isWaiting = true;
      replaceReusable(this);
    }
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#handle.close();
  }

  /** Handles a datagram or an error. A `status` below 0 is an error; `bytes` is then ignored. */
  take(status: number, bytes: Uint8Array | undefined): void {
    if (this.#isClosed) return;
    if (bytes === undefined || status < 0) {
      this.#emitError(status, undefined);
      return;
    }
    try {
      this.#events.onMessage(bytes);
    } catch (thrown) {
      this.#events.onThrow(thrown);
    }
  }

  onTaken(): void {
    this.#isWaiting = false;
  }

  onRefused(status: number, bytes: Uint8Array): void {
    this.#isWaiting = false;
    if (!this.#isClosed) this.#emitError(status, bytes);
  }

  #emitError(status: number, unsent: Uint8Array | undefined): void {
    try {
      this.#events.onError(getSystemErrorName(status), unsent);
    } catch (thrown) {
      this.#events.onThrow(thrown);
    }
  }
}

function onMessage(this: UdpHandle, status: number, _handle: UdpHandle, bytes: Uint8Array): void {
  (this.owner as RawUdpEndpointSocket).take(status, bytes);
}

function onError(): void {}

// If the kernel takes a datagram at once, as it nearly always does, sending allocates nothing: each send uses the list
// and the request in `reusable`. Otherwise libuv keeps the datagram and its request, and the next send gets a new
// request. Libuv keeps at most one datagram per socket.
const { newRequest } = requireRawUdpBinding();

/** The list and request for the next send of any socket. */
export const reusable: { request: SendRequest; readonly list: [Uint8Array] } = {
  request: newRequest(),
  list: [new Uint8Array(0)],
};

/** A socket that waits until the kernel takes a datagram that libuv keeps. */
export interface PendingSend {
  onTaken(bytes: number): void;
  onRefused(status: number, bytes: Uint8Array): void;
}

/**
 * Gives `reusable` a new request, because libuv keeps the request of the last send. `waiting` gets the result of the
 * last send.
 */
export function replaceReusable(waiting: PendingSend): void {
  const { request, list } = reusable;
  request.owner = waiting;
  request.bytes = list[0];
  request.oncomplete = onComplete;
  reusable.request = newRequest();
}

function onComplete(this: SendRequest, status: number): void {
  const waiting = this.owner as PendingSend;
  if (status < 0) waiting.onRefused(status, this.bytes);
  else waiting.onTaken(this.bytes.length);
}
