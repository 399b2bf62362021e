// The numbers of RFC 9113.

/** The types of frames (RFC 9113 §6). */
export const FRAME = {
  data: 0,
  headers: 1,
  priority: 2,
  rstStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goaway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

/** The flags of frames. END_STREAM and ACK are the same bit. */
export const FLAG = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

/** The settings of a connection (RFC 9113 §6.5.2, RFC 8441 §3). */
export const SETTING = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
  enableConnectProtocol: 8,
} as const;

/** The error codes of RST_STREAM and GOAWAY (RFC 9113 §7). */
export const ERROR = {
  none: 0x0,
  protocol: 0x1,
  internal: 0x2,
  flowControl: 0x3,
  streamClosed: 0x5,
  frameSize: 0x6,
  refusedStream: 0x7,
  cancel: 0x8,
  compression: 0x9,
  enhanceYourCalm: 0xb,
} as const;

/** The first bytes of a client (RFC 9113 §3.4). */
export const CLIENT_PREFACE: Uint8Array = new TextEncoder().encode('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');

/** Whether bytes begin with the HTTP/2 preface (RFC 9113 §3.4). No HTTP/1.1 request begins with `PRI `. */
export function startsWithPreface(bytes: Uint8Array): boolean {
  return bytes[0] === 0x50 && bytes[1] === 0x52 && bytes[2] === 0x49 && bytes[3] === 0x20;
}

/** Whether bytes are a part of `PRI `, so that further bytes decide whether the client speaks HTTP/2. */
export function isPartOfPreface(bytes: Uint8Array): boolean {
  if (bytes.length >= 4) return false;
  for (let at = 0; at < bytes.length; at += 1) if (bytes[at] !== CLIENT_PREFACE[at]) return false;
  return true;
}

export const FRAME_HEADER_BYTES = 9;
/** The maximum payload of a frame that we take and send: the initial SETTINGS_MAX_FRAME_SIZE. */
export const MAX_FRAME_BYTES = 16_384;
/** The payload of PRIORITY, and the fields of HEADERS for priorities. */
export const PRIORITY_BYTES = 5;
/** The window of each stream and of the connection before any SETTINGS and WINDOW_UPDATE (RFC 9113 §6.9.2). */
export const INITIAL_WINDOW_BYTES = 65_535;
/** RFC 9113 §6.9.1: a larger window is an error. */
export const MAX_WINDOW_BYTES = 0x7fff_ffff;
export const MAX_STREAM_ID = 0x7fff_ffff;

/** Reads the 32 bits at `at` as an unsigned number. */
export function readUint32(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] as number) << 24) |
      ((bytes[at + 1] as number) << 16) |
      ((bytes[at + 2] as number) << 8) |
      (bytes[at + 3] as number)) >>>
    0
  );
}

export function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}
