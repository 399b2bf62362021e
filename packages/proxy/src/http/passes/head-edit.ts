import { TOKEN_LOWER } from '../h1/byte-classes.ts';
import { FIELD, HeadFields, MAX_FIELDS } from '../h1/head-fields.ts';
import { ByteWriter } from './byte-writer.ts';

/** The memory for the lines that passes append to one head: those of the proxy and those of a route's filters. */
const MAX_APPENDED_BYTES = 65_536;
const LF = 0x0a;
const COLON = 0x3a;

/** The number of field ids, rounded up to a multiple of four, so that four counts are cleared at once. */
const ID_COUNT: number = 4 * Math.ceil((Math.max(...Object.values(FIELD)) + 1) / 4);

/**
 * The changes that passes make to one parsed head: fields that are not forwarded and lines that follow the kept fields.
 * One instance is allocated per worker and reused for every head: `begin`, then the passes, then the writer.
 */
export class HeadEdit {
  /** The parsed head. Passes do not change it. */
  fields: HeadFields = new HeadFields();
  /** 1 for each field that is not forwarded, by the index of the field. */
  readonly dropped: Uint8Array = new Uint8Array(MAX_FIELDS);
  /** The field lines that follow the kept fields. The writer is full if the passes appended too much. */
  readonly appended: ByteWriter = new ByteWriter(new Uint8Array(MAX_APPENDED_BYTES));
  /** The target that replaces the received one. Undefined in a response, and if the received target is kept. */
  target: Uint8Array | undefined;
  /** The array that contains the only Host, from `hostStart` to `hostEnd`. Undefined if the received Host is kept. */
  host: Uint8Array | undefined;
  hostStart = 0;
  hostEnd = 0;
  readonly #countById: Uint8Array = new Uint8Array(ID_COUNT);
  /** The memory of `#countById`. A loop over few words is faster than `fill`. */
  readonly #countWords: Uint32Array = new Uint32Array(this.#countById.buffer);
  readonly #firstById: Uint8Array = new Uint8Array(ID_COUNT);

  /** Starts with a head of which every field is kept. */
  begin(fields: HeadFields): void {
    this.fields = fields;
    this.appended.at = 0;
    this.target = undefined;
    this.host = undefined;
    const { ids } = fields;
    const counts = this.#countById;
    const first = this.#firstById;
    const words = this.#countWords;
    for (let index = 0; index < words.length; index += 1) words[index] = 0;
    for (let index = fields.count - 1; index >= 0; index -= 1) {
      const id = ids[index] as number;
      counts[id] = (counts[id] as number) + 1;
      first[id] = index;
      this.dropped[index] = 0;
    }
  }

  /** Returns how many fields with this id were received, dropped or not. */
  countOf(id: number): number {
    return this.#countById[id] as number;
  }

  /** Returns the index of the first received field with this id, or -1. */
  firstOf(id: number): number {
    return this.#countById[id] === 0 ? -1 : (this.#firstById[id] as number);
  }

  /** Drops all received fields with this id. */
  drop(id: number): void {
    const count = this.#countById[id] as number;
    if (count === 0) return;
    const first = this.#firstById[id] as number;
    this.dropped[first] = 1;
    if (count > 1) this.dropAfter(first, id);
  }

  /** Drops the received fields with this id whose index is larger than `index`. */
  dropAfter(index: number, id: number): void {
    const { ids, count } = this.fields;
    for (let other = index + 1; other < count; other += 1) if (ids[other] === id) this.dropped[other] = 1;
  }

  /** Drops the received Host. The bytes from `start` to `end` (exclusive) are sent as the only Host. */
  replaceHost(bytes: Uint8Array, start: number, end: number): void {
    this.drop(FIELD.host);
    this.host = bytes;
    this.hostStart = start;
    this.hostEnd = end;
  }

  /** Drops all received fields with this name, and the appended lines with this name. `name` is in lower case. */
  dropByName(name: Uint8Array): void {
    const { bytes, nameStart, nameEnd, count } = this.fields;
    for (let index = 0; index < count; index += 1) {
      const start = nameStart[index] as number;
      if ((nameEnd[index] as number) - start === name.length && isSameName(bytes, start, name)) this.dropped[index] = 1;
    }
    this.#removeAppended(name);
  }

  /** Appends the value of a received field. */
  appendValue(index: number): void {
    const { bytes, valueStart, valueEnd } = this.fields;
    this.appended.range(bytes, valueStart[index] as number, valueEnd[index] as number);
  }

  #removeAppended(name: Uint8Array): void {
    const { memory } = this.appended;
    let start = 0;
    while (start < this.appended.at) {
      const end = memory.indexOf(LF, start) + 1;
      if (memory[start + name.length] === COLON && isSameName(memory, start, name)) {
        memory.copyWithin(start, end, this.appended.at);
        this.appended.at -= end - start;
      } else start = end;
    }
  }
}

/** Whether the name that starts at `start` equals `name`, which is in lower case. The caller compares the lengths. */
export function isSameName(bytes: Uint8Array, start: number, name: Uint8Array): boolean {
  for (let at = 0; at < name.length; at += 1) {
    if (TOKEN_LOWER[bytes[start + at] as number] !== name[at]) return false;
  }
  return true;
}
