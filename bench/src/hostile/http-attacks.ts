// The attacks of a tenant with an HTTP Service, and the bytes that its clients send.
import { setTimeout } from 'node:timers/promises';
import { freePort } from '@weir/testkit';
import { startHttpBackend } from '../backends/start-backends.ts';
import type { AttackBytes, HttpAttack } from '../load/http-attack-process.ts';
import { descriptorLimit, maxIdleConnections, residentKiB } from '../measure/proc-stats.ts';
import { RpcProcess } from '../processes/rpc.ts';
import { serviceManifest } from '../subjects/weir-manifests.ts';
import type { BoundedValue } from './hostile-result.ts';
import type { Attacker } from './scenarios.ts';

export type HttpAttackOptions = {
  /** How many connections stay open. Fewer if the descriptors do not suffice. */
  readonly connections: number;
  /** How often `bytes.next` is sent, on all connections together. 0 for idle connections. */
  readonly perSecond: number;
  readonly bytes: AttackBytes;
  /** Whether the clients' process serves the endpoint, see `HttpAttack.openEndpoint`. Otherwise nginx does. */
  readonly hasOwnEndpoint?: boolean;
  /** Whether the proxy must close connections, because the attack exceeds a limit. */
  readonly isRefused: boolean;
};

export async function startHttpAttack(options: HttpAttackOptions): Promise<Attacker> {
  const { perSecond, bytes, isRefused, hasOwnEndpoint = false } = options;
  await using cleanup = new AsyncDisposableStack();
  const port = await freePort();
  const program = new URL('../load/http-attack-process.ts', import.meta.url);
  const clients = cleanup.use(new RpcProcess<HttpAttack>(program, []));
  const target = hasOwnEndpoint ? await clients.call('openEndpoint') : cleanup.use(await startHttpBackend()).port;
  const connections = Math.min(options.connections, maxIdleConnections(descriptorLimit()));
  let bounded: BoundedValue[] = [];
  let opened = '';
  const started = cleanup.move();
  return {
    manifests: serviceManifest(
      { name: 'web', namespace: 'hostile', protocol: 'TCP', port, appProtocol: 'http' },
      { target, addresses: ['127.0.0.1'] },
    ),
    async arm(pid) {
      const before = residentKiB(pid);
      await clients.call('open', port, connections, bytes);
      const count = await clients.call('count');
      opened = `${count} connections, ${((residentKiB(pid) - before) / count).toFixed(1)} KiB each`;
    },
    async attack(seconds) {
      if (perSecond === 0) await setTimeout(seconds * 1_000);
      const { sent, ended } = await clients.call('run', perSecond, perSecond === 0 ? 0 : seconds);
      bounded = isRefused ? [{ value: ended, min: 1, miss: 'the attack was not refused' }] : [];
      const parts = bytes.next === '' ? 'bytes read' : 'parts sent';
      return `${opened}; ${sent} ${parts}, ${ended} connections closed by the proxy`;
    },
    bounded: () => bounded,
    disarm: () => clients.call('close'),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

const HEAD = 'GET / HTTP/1.1\r\nHost: hostile.example\r\n';
const NONE = { first: '', awaitsAnswer: false, next: '', copies: 1, streamIdsAt: [], stream: 1 } as const;

/** A head that never ends: each part is one more byte of the value of a field. */
export const SLOW_HEAD: AttackBytes = { ...NONE, first: `${HEAD}X-Slow: `, next: 'x' };

/** A body that takes days: each part is one more byte. */
export const SLOW_BODY: AttackBytes = {
  ...NONE,
  first: 'POST / HTTP/1.1\r\nHost: hostile.example\r\nContent-Length: 1000000\r\n\r\n',
  next: 'x',
};

/** A response of 1 MiB of which the client reads one byte after the other. */
export const SLOW_READ: AttackBytes = { ...NONE, first: `${HEAD}\r\n` };

const FIELDS = 200;
const FIELD_VALUE_BYTES = 200;

/** A head of 42 KB with 200 fields, which has more bytes and more fields than Weir takes. */
export const LARGE_HEAD: AttackBytes = {
  ...NONE,
  next: `${HEAD}${Array.from({ length: FIELDS }, (_, index) => `X-${index}: ${'v'.repeat(FIELD_VALUE_BYTES)}\r\n`).join('')}\r\n`,
};

// The frames of HTTP/2 (RFC 9113 §4.1) and the representations of fields (RFC 7541 §6).

const HEADERS = 1;
const RST_STREAM = 3;
const SETTINGS = 4;
const END_STREAM_AND_HEADERS = 5;
const STREAM_ID_AT = 5;
const FRAME_HEADER_BYTES = 9;
const MAX_FRAME_BYTES = 16_384;
const PREFACE = `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n${frame(SETTINGS, 0, '')}`;
/** `:method: GET`, `:scheme: http` and `:path: /` of the static table, and `:authority: a`. */
const REQUEST_FIELDS = '\x82\x86\x84\x01\x01a';
const REQUEST = frame(HEADERS, END_STREAM_AND_HEADERS, REQUEST_FIELDS);

/** A connection that has sent one request, and then sends nothing. */
export const IDLE_HTTP2: AttackBytes = { ...NONE, first: `${PREFACE}${withStream(REQUEST, 1)}`, awaitsAnswer: true };

/** 100 requests in one write, each of which the client resets at once. */
export const RESET_REQUESTS: AttackBytes = {
  ...NONE,
  first: PREFACE,
  next: `${REQUEST}${frame(RST_STREAM, 0, '\x00\x00\x00\x08')}`,
  copies: 100,
  streamIdsAt: [STREAM_ID_AT, REQUEST.length + STREAM_ID_AT],
};

const BOMB_VALUE_BYTES = 3_900;

/**
 * A head of one frame that stands for 48 MB: it puts a field of 3.9 KB into the dynamic table (RFC 7541 §6.2.1), and then names this
 * field with one byte (RFC 7541 §6.1) until the frame is full.
 */
export const HPACK_BOMB: AttackBytes = { ...NONE, first: PREFACE, next: hpackBomb(), streamIdsAt: [STREAM_ID_AT] };

function hpackBomb(): string {
  // The length needs three bytes: 127 in the first, then the rest in groups of seven bits (RFC 7541 §5.1).
  const rest = BOMB_VALUE_BYTES - 127;
  const length = String.fromCharCode(127, 128 + (rest % 128), rest >> 7);
  const field = `\x40\x01x${length}${'v'.repeat(BOMB_VALUE_BYTES)}`;
  const fields = `${REQUEST_FIELDS}${field}`;
  // The first entry of the dynamic table has the index 62.
  return frame(HEADERS, END_STREAM_AND_HEADERS, `${fields}${'\xbe'.repeat(MAX_FRAME_BYTES - fields.length)}`);
}

/** Returns a frame of stream 0, as Latin-1. */
function frame(type: number, flags: number, payload: string): string {
  const { length } = payload;
  return `${String.fromCharCode(length >> 16, (length >> 8) & 255, length & 255, type, flags)}\0\0\0\0${payload}`;
}

function withStream(of: string, stream: number): string {
  return `${of.slice(0, FRAME_HEADER_BYTES - 1)}${String.fromCharCode(stream)}${of.slice(FRAME_HEADER_BYTES)}`;
}
