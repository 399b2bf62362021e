// Reads the parts of an OCSP response (RFC 6960 §4.2.1, DER) that tell for which certificate and for how long it can be
// stapled. The signature is left to clients, because only they know which responders they trust.

/** The period in which a response can be stapled, in milliseconds since the epoch. */
export interface OcspValidity {
  readonly thisUpdate: number;
  readonly nextUpdate: number;
}

/**
 * Returns the validity of the response for the certificate with this serial number (hexadecimal digits), or undefined if the
 * response is not valid DER, does not say that the certificate is good, or has no end.
 */
export function ocspValidityOf(response: Buffer, serialNumber: string): OcspValidity | undefined {
  const responses = singleResponsesIn(response);
  const serial = BigInt(`0x${serialNumber}`);
  for (let single = responses?.next(SEQUENCE); single !== undefined; single = responses?.next(SEQUENCE)) {
    const certificate = single.next(SEQUENCE);
    certificate?.next(SEQUENCE);
    certificate?.next(OCTET_STRING);
    certificate?.next(OCTET_STRING);
    const number = certificate?.next(INTEGER)?.integer();
    if (number === serial) return validityOf(single);
  }
  return undefined;
}

const INTEGER = 0x02;
const OCTET_STRING = 0x04;
const OBJECT_IDENTIFIER = 0x06;
const ENUMERATED = 0x0a;
const GENERALIZED_TIME = 0x18;
const SEQUENCE = 0x30;
const CONTEXT_0 = 0xa0;
/** The certStatus `good`: [0] IMPLICIT NULL. */
const GOOD = 0x80;
const SUCCESSFUL = 0n;
/** The content of the object identifier id-pkix-ocsp-basic, 1.3.6.1.5.5.7.48.1.1. */
const BASIC_RESPONSE = '2b0601050507300101';

/** Returns the sequence of SingleResponse. */
function singleResponsesIn(response: Buffer): DerReader | undefined {
  const outer = new DerReader(response).next(SEQUENCE);
  if (outer?.next(ENUMERATED)?.integer() !== SUCCESSFUL) return undefined;
  const body = outer.next(CONTEXT_0)?.next(SEQUENCE);
  if (body?.next(OBJECT_IDENTIFIER)?.content.toString('hex') !== BASIC_RESPONSE) return undefined;
  const basic = body.next(OCTET_STRING)?.next(SEQUENCE);
  const data = basic?.next(SEQUENCE);
  // The version is absent for version 1, the only one.
  if (data?.tag === CONTEXT_0) data.next(CONTEXT_0);
  data?.nextAny();
  return data?.next(GENERALIZED_TIME) && data.next(SEQUENCE);
}

function validityOf(single: DerReader): OcspValidity | undefined {
  if (single.next(GOOD) === undefined) return undefined;
  const thisUpdate = timeOf(single.next(GENERALIZED_TIME));
  const nextUpdate = timeOf(single.next(CONTEXT_0)?.next(GENERALIZED_TIME));
  return thisUpdate === undefined || nextUpdate === undefined ? undefined : { thisUpdate, nextUpdate };
}

/** RFC 5280 §4.1.2.5.2: a GeneralizedTime is in UTC and has seconds, without fractions. */
const TIME_PATTERN = /^(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})Z$/;

function timeOf(element: DerReader | undefined): number | undefined {
  const text = element?.content.toString('latin1') ?? '';
  if (!TIME_PATTERN.test(text)) return undefined;
  const time = Date.parse(text.replace(TIME_PATTERN, '$1-$2-$3T$4:$5:$6Z'));
  return Number.isNaN(time) ? undefined : time;
}

/** Reads the elements of a DER value in order (ITU-T X.690). Returns undefined for everything that is missing or malformed. */
class DerReader {
  readonly content: Buffer;
  #at = 0;

  constructor(content: Buffer) {
    this.content = content;
  }

  /** The tag of the next element; undefined at the end. */
  get tag(): number | undefined {
    return this.content[this.#at];
  }

  /** Reads the next element if it has this tag. */
  next(tag: number): DerReader | undefined {
    return this.tag === tag ? this.nextAny() : undefined;
  }

  nextAny(): DerReader | undefined {
    const { content } = this;
    let start = this.#at + 2;
    let length = content[this.#at + 1];
    if (length === undefined) return undefined;
    if (length >= 0x80) {
      const size = length - 0x80;
      if (size < 1 || size > 3 || start + size > content.length) return undefined;
      length = content.readUIntBE(start, size);
      start += size;
    }
    if (start + length > content.length) return undefined;
    this.#at = start + length;
    return new DerReader(content.subarray(start, start + length));
  }

  integer(): bigint {
    return BigInt(`0x${this.content.toString('hex') || '0'}`);
  }
}
