/**
 * The quantum of a client that sends little data in much input. OpenSSL takes up to 1 µs for each byte of such input, for example for
 * requests for new keys (RFC 8446 §4.6.3), so this quantum takes about 8 ms.
 */
export const MIN_READ_BYTES = 8_192;
/** The quantum of a client that sends much data. Needs fewer system calls per byte. */
export const MAX_READ_BYTES = 65_536;
/** How much of the input must be data. Records with 300 bytes of data have this share. */
const MIN_DATA_SHARE = 0.9;
/** A record of the maximum length, which may have arrived only in part. */
const MAX_RECORD_BYTES = 16_640;
/** The input that counts. Older input counts half. */
const MAX_COUNTED_BYTES = 524_288;

/** How many bytes of TLS input one stream reads at once. */
export class RecordQuantum {
  bytes: number = MIN_READ_BYTES;
  #inputBytes = 0;
  #dataBytes = 0;

  /** Counts a read of `inputBytes`, whose records contained `dataBytes`. */
  adapt(inputBytes: number, dataBytes: number): void {
    this.#inputBytes += inputBytes;
    this.#dataBytes += dataBytes;
    if (this.#dataBytes < this.#inputBytes * MIN_DATA_SHARE - MAX_RECORD_BYTES) {
      this.#inputBytes = 0;
      this.#dataBytes = 0;
    } else if (this.#inputBytes > MAX_COUNTED_BYTES) {
      this.#inputBytes /= 2;
      this.#dataBytes /= 2;
    }
    this.bytes = this.#dataBytes < 4 * MAX_READ_BYTES ? MIN_READ_BYTES : MAX_READ_BYTES;
  }
}
