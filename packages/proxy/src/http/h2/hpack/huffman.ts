// The Huffman code of HPACK (RFC 7541 §5.2 and Appendix B).

/**
 * The length in bits of the code of each byte, and of the end-of-string symbol (EOS) as the last entry. The code is
 * canonical: codes of one length are consecutive numbers in the order of their symbols, so the lengths define all codes.
 */
const CODE_LENGTHS: readonly number[] = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
];
const EOS = 256;
const MAX_CODE_BITS = 30;
/** RFC 7541 §5.2: padding is shorter than one byte. */
const MAX_PADDING_BITS = 7;

const LENGTHS: Uint8Array = Uint8Array.from(CODE_LENGTHS);
const CODES: Uint32Array = canonicalCodes();

/** The bits of an entry of `TRANSITIONS`: the next state, the symbol, and what the four bits have completed. */
const SYMBOL_SHIFT = 8;
const HAS_SYMBOL = 1 << 16;
const FAILS = 1 << 17;
/**
 * For each state and each value of the next four bits: what follows. A state is an inner node of the code's tree, of which
 * there are 256; state 0 is the root. No code is shorter than five bits, so four bits complete at most one symbol.
 */
const TRANSITIONS: Uint32Array = new Uint32Array(256 * 16);
/** 1 for each state in which a string may end: fewer than eight bits, all ones, follow the last symbol. */
const MAY_END: Uint8Array = new Uint8Array(256);
buildStates();

/** Returns how many bytes the code of the bytes from `start` to `end` (exclusive) takes, with its padding. */
export function huffmanLengthOf(bytes: Uint8Array, start: number, end: number): number {
  let bits = 0;
  for (let at = start; at < end; at += 1) bits += LENGTHS[bytes[at] as number] as number;
  return (bits + 7) >>> 3;
}

/** Writes the code of the bytes from `start` to `end` to `target`. Returns the position after the code. */
export function huffmanEncode(target: Uint8Array, to: number, bytes: Uint8Array, start: number, end: number): number {
  let at = to;
  // At most 7 bits wait for the next code. A code is written in two parts, so that all bits fit into 31.
  let waiting = 0;
  let waitingBits = 0;
  for (let from = start; from < end; from += 1) {
    const byte = bytes[from] as number;
    const code = CODES[byte] as number;
    let rest = LENGTHS[byte] as number;
    while (rest > 0) {
      const taken = rest > 16 ? 16 : rest;
      rest -= taken;
      waiting = (waiting << taken) | ((code >>> rest) & ((1 << taken) - 1));
      waitingBits += taken;
      while (waitingBits >= 8) {
        waitingBits -= 8;
        target[at] = waiting >>> waitingBits;
        at += 1;
      }
      waiting &= (1 << waitingBits) - 1;
    }
  }
  if (waitingBits === 0) return at;
  // RFC 7541 §5.2: the padding is the most significant bits of EOS, which are ones.
  target[at] = (waiting << (8 - waitingBits)) | (0xff >>> waitingBits);
  return at + 1;
}

/**
 * Decodes the bytes from `start` to `end` (exclusive) to `target`, which must have space for 8/5 of their number. Returns
 * the position after the decoded bytes, or -1 if the bytes are not a valid code.
 */
export function huffmanDecode(bytes: Uint8Array, start: number, end: number, target: Uint8Array, to: number): number {
  let at = to;
  let state = 0;
  for (let from = start; from < end; from += 1) {
    const byte = bytes[from] as number;
    let entry = TRANSITIONS[(state << 4) | (byte >>> 4)] as number;
    if ((entry & HAS_SYMBOL) !== 0) {
      target[at] = (entry >>> SYMBOL_SHIFT) & 0xff;
      at += 1;
    }
    if ((entry & FAILS) !== 0) return -1;
    entry = TRANSITIONS[((entry & 0xff) << 4) | (byte & 15)] as number;
    if ((entry & HAS_SYMBOL) !== 0) {
      target[at] = (entry >>> SYMBOL_SHIFT) & 0xff;
      at += 1;
    }
    if ((entry & FAILS) !== 0) return -1;
    state = entry & 0xff;
  }
  // RFC 7541 §5.2: padding that is longer than 7 bits or does not consist of ones is an error.
  return MAY_END[state] === 1 ? at : -1;
}

function canonicalCodes(): Uint32Array {
  const codes = new Uint32Array(EOS + 1);
  let code = 0;
  for (let length = 1; length <= MAX_CODE_BITS; length += 1) {
    code *= 2;
    for (let symbol = 0; symbol <= EOS; symbol += 1) {
      if (LENGTHS[symbol] !== length) continue;
      codes[symbol] = code;
      code += 1;
    }
  }
  return codes;
}

function buildStates(): void {
  // A child is a state, or -1 - symbol.
  const children: number[][] = [[]];
  for (let symbol = 0; symbol <= EOS; symbol += 1) {
    let state = 0;
    for (let bit = (LENGTHS[symbol] as number) - 1; bit > 0; bit -= 1) {
      const node = children[state] as number[];
      const branch = ((CODES[symbol] as number) >>> bit) & 1;
      let next = node[branch];
      if (next === undefined) {
        next = children.push([]) - 1;
        node[branch] = next;
      }
      state = next;
    }
    (children[state] as number[])[(CODES[symbol] as number) & 1] = -1 - symbol;
  }
  for (let state = 0; state < children.length; state += 1) {
    for (let bits = 0; bits < 16; bits += 1) TRANSITIONS[(state << 4) | bits] = transitionOf(children, state, bits);
  }
  for (let state = 0, bits = 0; bits <= MAX_PADDING_BITS; bits += 1) {
    MAY_END[state] = 1;
    state = (children[state] as number[])[1] as number;
  }
}

function transitionOf(children: readonly number[][], from: number, bits: number): number {
  let state = from;
  let symbol = 0;
  for (let bit = 3; bit >= 0; bit -= 1) {
    const next = (children[state] as number[])[(bits >>> bit) & 1] as number;
    // RFC 7541 §5.2: a string that contains EOS is an error.
    if (next === -1 - EOS) return FAILS;
    if (next < 0) symbol = HAS_SYMBOL | ((-1 - next) << SYMBOL_SHIFT);
    state = next < 0 ? 0 : next;
  }
  return state | symbol;
}
