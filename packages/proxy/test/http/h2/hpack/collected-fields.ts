import { latin1Text } from '../../../../src/http/h1/head-fields.ts';
import { type FieldTarget, MAX_FIELD_TARGET_BYTES } from '../../../../src/http/h2/hpack/decoder.ts';

export type Field = readonly [name: string, value: string];

/** Collects decoded fields as text. */
export class CollectedFields implements FieldTarget {
  readonly memory: Uint8Array = new Uint8Array(MAX_FIELD_TARGET_BYTES);
  readonly at = 0;
  readonly fields: Field[] = [];
  /** The names of the fields that contain bytes that are not allowed. */
  readonly invalidNames: string[] = [];
  skippedFields = 0;
  maxFields: number = Number.POSITIVE_INFINITY;

  take(nameEnd: number, valueEnd: number, _id: number, isValid: boolean): boolean {
    const name = latin1Text(this.memory, 0, nameEnd);
    this.fields.push([name, latin1Text(this.memory, nameEnd + 2, valueEnd)]);
    if (!isValid) this.invalidNames.push(name);
    return this.fields.length < this.maxFields;
  }

  skip(): void {
    this.skippedFields += 1;
  }
}
