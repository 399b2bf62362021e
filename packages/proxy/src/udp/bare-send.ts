// Sending on bare handles. What the kernel takes at once, which is nearly always, costs no object: list and request are
// used again. What it does not take waits in libuv with a request and list of its own, one datagram per socket at most.
import { requireBareUdpBinding, type SendRequest } from './bare-udp-binding.ts';

const { newRequest } = requireBareUdpBinding();

/** The next send may use both. */
export const spare: { request: SendRequest; readonly list: [Uint8Array] } = {
  request: newRequest(),
  list: [new Uint8Array(0)],
};

/** Whoever waits for the kernel to take a datagram. */
export interface Waiting {
  onTaken(bytes: number): void;
  onRefused(status: number): void;
}

/** libuv has kept the last send: `waiting` hears of it. */
export function keepSpare(waiting: Waiting): void {
  const { request, list } = spare;
  request.owner = waiting;
  request.bytes = list[0];
  request.oncomplete = onComplete;
  spare.request = newRequest();
}

function onComplete(this: SendRequest, status: number): void {
  const waiting = this.owner as Waiting;
  if (status < 0) waiting.onRefused(status);
  else waiting.onTaken(this.bytes.length);
}
