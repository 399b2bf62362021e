import { MAX_HEAD_BYTES } from '../h1/request-head.ts';
import { MAX_CONCURRENT_STREAMS } from './abuse-limits.ts';
import {
  ERROR,
  INITIAL_WINDOW_BYTES,
  MAX_FRAME_BYTES,
  MAX_WINDOW_BYTES,
  readUint32,
  SETTING,
  writeUint32,
} from './protocol.ts';

const SETTING_BYTES = 6;
const DEFAULT_TABLE_BYTES = 4_096;

/** The payloads of our SETTINGS. The initial values of RFC 9113 §6.5.2 hold for all other settings. */
export const OWN_SERVER_SETTINGS: Uint8Array = settingsPayload([
  [SETTING.maxConcurrentStreams, MAX_CONCURRENT_STREAMS],
  [SETTING.maxHeaderListSize, MAX_HEAD_BYTES],
  // RFC 8441 §3.
  [SETTING.enableConnectProtocol, 1],
]);
export const OWN_CLIENT_SETTINGS: Uint8Array = settingsPayload([
  [SETTING.enablePush, 0],
  [SETTING.maxHeaderListSize, MAX_HEAD_BYTES],
]);

/** The settings of the peer (RFC 9113 §6.5.2). */
export class PeerSettings {
  headerTableBytes: number = DEFAULT_TABLE_BYTES;
  /** RFC 9113 §6.5.2: initially there is no limit. A client assumes a common one until SETTINGS arrives. */
  maxConcurrentStreams = 100;
  initialWindowBytes: number = INITIAL_WINDOW_BYTES;
  allowsConnectProtocol = false;
  readonly #isServer: boolean;

  /** `isServer`: the peer is a server. */
  constructor(isServer: boolean) {
    this.#isServer = isServer;
  }

  /** Applies the payload of SETTINGS. Returns the code of the connection error, or `ERROR.none`. */
  apply(bytes: Uint8Array, start: number, end: number): number {
    for (let at = start; at < end; at += SETTING_BYTES) {
      const id = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
      const error = this.#applySetting(id, readUint32(bytes, at + 2));
      if (error !== ERROR.none) return error;
    }
    return ERROR.none;
  }

  #applySetting(id: number, value: number): number {
    switch (id) {
      case SETTING.headerTableSize:
        this.headerTableBytes = value;
        return ERROR.none;
      case SETTING.enablePush:
        // RFC 9113 §6.5.2: only 0 and 1 are allowed, and a server must not send 1.
        return value > 1 || (this.#isServer && value === 1) ? ERROR.protocol : ERROR.none;
      case SETTING.maxConcurrentStreams:
        this.maxConcurrentStreams = value;
        return ERROR.none;
      case SETTING.initialWindowSize:
        // RFC 9113 §6.5.2: a window above 2^31 - 1 is an error.
        if (value > MAX_WINDOW_BYTES) return ERROR.flowControl;
        this.initialWindowBytes = value;
        return ERROR.none;
      case SETTING.maxFrameSize:
        // RFC 9113 §6.5.2: the size is from 2^14 to 2^24 - 1. We never send larger frames than 2^14.
        return value < MAX_FRAME_BYTES || value > 0xff_ffff ? ERROR.protocol : ERROR.none;
      case SETTING.enableConnectProtocol:
        // RFC 8441 §3: only 0 and 1 are allowed, and 1 cannot be taken back.
        if (value > 1 || (value === 0 && this.allowsConnectProtocol)) return ERROR.protocol;
        this.allowsConnectProtocol = value === 1;
        return ERROR.none;
      default:
        // RFC 9113 §6.5.2: unknown settings are ignored. SETTINGS_MAX_HEADER_LIST_SIZE is advisory.
        return ERROR.none;
    }
  }
}

/** Returns the payload of SETTINGS with these pairs of id and value. */
function settingsPayload(settings: readonly (readonly [id: number, value: number])[]): Uint8Array {
  const payload = new Uint8Array(settings.length * SETTING_BYTES);
  for (const [index, [id, value]] of settings.entries()) {
    payload[index * SETTING_BYTES + 1] = id;
    writeUint32(payload, index * SETTING_BYTES + 2, value);
  }
  return payload;
}
