// Sending on bare handles. What the kernel takes at once, which is nearly always, costs no object: list and request are
// used again. What it does not take waits in libuv with a request and list of its own, one datagram per socket at most.
import { requireRawUdpBinding, type SendRequest } from './bare-udp-binding.ts';

const { newRequest } = requireRawUdpBinding();

/** The next send may use both. */
export const reusable: { request: SendRequest; readonly list: [Uint8Array] } = {
  request: newRequest(),
  list: [new Uint8Array(0)],
};

/** Whoever waits for the kernel to take a datagram. */
export interface PendingSend {
  onTaken(bytes: number): void;
  onRefused(status: number): void;
}

/** libuv has kept the last send: `waiting` hears of it. */
export function replaceReusable(waiting: PendingSend): void {
  const { request, list } = reusable;
  request.owner = waiting;
  request.bytes = list[0];
  request.oncomplete = onComplete;
  reusable.request = newRequest();
}

function onComplete(this: SendRequest, status: number): void {
  const waiting = this.owner as PendingSend;
  if (status < 0) waiting.onRefused(status);
  else waiting.onTaken(this.bytes.length);
}
