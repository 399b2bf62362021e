import { FIELD, type HeadFields } from '../h1/head-fields.ts';

const SEMICOLON = 0x3b;
const SPACE = 0x20;
const CR = 0x0d;
const LF = 0x0a;

/**
 * Joins all Cookie fields of a request to the last field. RFC 9113 §8.2.3: a client may divide Cookie, and a message
 * that passes to HTTP/1.1 has one Cookie. The field lines lie in `memory`, in their order, and end at `end`. After
 * `end` there is space for all of them. Returns the new end.
 */
export function joinCookies(fields: HeadFields, memory: Uint8Array, end: number): number {
  const { ids, nameStart, nameEnd, valueStart, valueEnd } = fields;
  let joinedEnd = end;
  let first = -1;
  let kept = 0;
  let to = 0;
  for (let index = 0; index < fields.count; index += 1) {
    const start = nameStart[index] as number;
    const lineEnd = (valueEnd[index] as number) + 2;
    if (ids[index] === FIELD.cookie) {
      if (first === -1) {
        first = index;
        to = start;
        memory.copyWithin(joinedEnd, start, lineEnd - 2);
        joinedEnd += lineEnd - 2 - start;
      } else {
        memory[joinedEnd] = SEMICOLON;
        memory[joinedEnd + 1] = SPACE;
        memory.copyWithin(joinedEnd + 2, valueStart[index] as number, lineEnd - 2);
        joinedEnd += lineEnd - (valueStart[index] as number);
      }
      continue;
    }
    // Each line after the first Cookie moves to the front.
    const shift = first === -1 ? 0 : start - to;
    if (shift > 0) {
      memory.copyWithin(to, start, lineEnd);
      to += lineEnd - start;
    }
    ids[kept] = ids[index] as number;
    nameStart[kept] = start - shift;
    nameEnd[kept] = (nameEnd[index] as number) - shift;
    valueStart[kept] = (valueStart[index] as number) - shift;
    valueEnd[kept] = (valueEnd[index] as number) - shift;
    kept += 1;
  }
  memory.copyWithin(to, end, joinedEnd);
  const joinedLineEnd = to + joinedEnd - end;
  ids[kept] = FIELD.cookie;
  nameStart[kept] = to;
  nameEnd[kept] = to + 'cookie'.length;
  valueStart[kept] = to + 'cookie: '.length;
  valueEnd[kept] = joinedLineEnd;
  memory[joinedLineEnd] = CR;
  memory[joinedLineEnd + 1] = LF;
  fields.count = kept + 1;
  fields.repeated &= ~(1 << FIELD.cookie);
  return joinedLineEnd + 2;
}
