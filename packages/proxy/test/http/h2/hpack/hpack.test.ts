import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { HpackDecoder, MAX_STRING_BYTES } from '../../../../src/http/h2/hpack/decoder.ts';
import { HpackEncoder } from '../../../../src/http/h2/hpack/encoder.ts';
import { huffmanDecode, huffmanEncode, huffmanLengthOf } from '../../../../src/http/h2/hpack/huffman.ts';
import { CollectedFields, type Field } from './collected-fields.ts';
import { HPACK_EXAMPLES } from './rfc7541-examples.ts';

/** Decodes blocks of one connection. The result of an invalid block is undefined. */
function decodeAll(decoder: HpackDecoder, blocks: readonly Uint8Array[]): (CollectedFields | undefined)[] {
  return blocks.map((block) => {
    const collected = new CollectedFields();
    return decoder.decode(block, 0, block.length, collected) === 'done' ? collected : undefined;
  });
}

const decodeOne = (hex: string): CollectedFields | undefined =>
  decodeAll(new HpackDecoder(), [Buffer.from(hex, 'hex')])[0];

function encode(encoder: HpackEncoder, fields: readonly Field[]): Uint8Array {
  const block = new Uint8Array(200_000);
  encoder.begin(block, 0);
  for (const [name, value] of fields) {
    const bytes = Buffer.from(name + value, 'latin1');
    encoder.field(bytes, 0, name.length, name.length, bytes.length);
  }
  return block.slice(0, encoder.position);
}

suite('HpackDecoder', () => {
  for (const { section, tableBytes, blocks } of HPACK_EXAMPLES) {
    test(`decodes the example of RFC 7541 ${section}`, () => {
      const decoder = new HpackDecoder(tableBytes);
      for (const { hex, fields, tableSize } of blocks) {
        assert.deepEqual(decodeAll(decoder, [Buffer.from(hex, 'hex')])[0]?.fields, fields);
        assert.equal(decoder.tableSize, tableSize);
      }
    });
  }

  const invalidBlocks: readonly (readonly [name: string, hex: string])[] = [
    ['the index 0', '80'],
    ['an index behind both tables', 'be'],
    ['a name index behind both tables', '7e0161'],
    ['an integer that is cut off', 'ff80'],
    ['an integer above the limit', 'ffffffffff0f'],
    ['a string that is cut off', '4005616263'],
    ['a literal without a value', '400161'],
    ['a size of the table above the limit', '3fe21f'],
    ['a change of the table behind a field', '8220'],
    ['Huffman padding of zeros', '418c f1e3c2e5f23a6ba0ab90f400'.replace(' ', '')],
    ['Huffman padding of a whole byte', '418df1e3c2e5f23a6ba0ab90f4ffff'],
    ['a Huffman string that contains EOS', '4184ffffffff'],
  ];
  for (const [name, hex] of invalidBlocks) {
    test(`refuses ${name}`, () => {
      assert.equal(decodeOne(hex), undefined);
    });
  }

  test('accepts the smallest and the largest size of the table', () => {
    assert.deepEqual(decodeOne('203fe11f82')?.fields, [[':method', 'GET']]);
  });

  for (const [name, field] of [
    ['an upper-case letter in a name', ['aB', 'x']],
    ['an empty name', ['', 'x']],
    ['a space in a name', ['a b', 'x']],
    ['an unknown pseudo-field', [':a', 'x']],
    ['a line feed in a value', ['a', 'x\ny']],
    ['a NUL in a value', ['a', 'x\0y']],
    ['a space before a value', ['a', ' x']],
    ['a tab behind a value', ['a', 'x\t']],
  ] as const) {
    test(`reports ${name} as invalid, also from the table`, () => {
      const [fieldName, value] = field;
      const literal = Buffer.from(
        `\x40${String.fromCharCode(fieldName.length)}${fieldName}${String.fromCharCode(value.length)}${value}`,
        'latin1',
      );
      const results = decodeAll(new HpackDecoder(), [literal, Buffer.of(0xbe)]);
      assert.deepEqual(
        results.map((result) => [result?.fields, result?.invalidNames]),
        [
          [[field], [fieldName]],
          [[field], [fieldName]],
        ],
      );
    });
  }

  test('skips a string above the limit and empties the table', () => {
    const decoder = new HpackDecoder();
    const length = MAX_STRING_BYTES + 1;
    const rest = length - 127;
    const long = Buffer.concat([
      Buffer.from([0x40, 1, 0x61, 0x7f, (rest & 0x7f) | 0x80, ((rest >> 7) & 0x7f) | 0x80, rest >> 14]),
      Buffer.alloc(length, 0x62),
    ]);
    const [, second, third] = decodeAll(decoder, [
      Buffer.from('4001610162', 'hex'),
      Buffer.concat([long, Buffer.of(0x82)]),
      Buffer.of(0xbe),
    ]);
    assert.equal(second?.skippedFields, 1);
    assert.deepEqual(second.fields, [[':method', 'GET']]);
    assert.equal(decoder.tableSize, 0);
    assert.equal(third, undefined);
  });

  test('stops when the target takes no more fields', () => {
    const collected = new CollectedFields();
    collected.maxFields = 2;
    assert.equal(new HpackDecoder().decode(Buffer.from('828486', 'hex'), 0, 3, collected), 'too-large');
    assert.equal(collected.fields.length, 2);
  });

  test('keeps the table within its limit whatever the bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 5 }), (blocks) => {
        const decoder = new HpackDecoder();
        decodeAll(decoder, blocks);
        assert.ok(decoder.tableSize <= 4096);
      }),
      { numRuns: 3_000 },
    );
  });
});

const token = fc.stringMatching(/^[a-z0-9-]{1,20}$/);
const fieldValue = fc.oneof(
  fc.stringMatching(/^([!-~\x80-\xff]([ -~\x80-\xff]{0,60}[!-~\x80-\xff])?)?$/),
  fc.constantFrom('', 'gzip, deflate', 'text/html; charset=utf-8', '200', 'GET', '/', '/index.html'),
);
const knownName = fc.constantFrom(
  ':method',
  ':path',
  ':status',
  'accept-encoding',
  'accept',
  'cookie',
  'authorization',
  'date',
  'x-request-id',
);
const field = fc.tuple(fc.oneof(token, knownName), fieldValue);
/** Blocks of one connection. Their fields come from a small set, so that many fields repeat. */
const blocks = fc
  .array(field, { minLength: 1, maxLength: 20 })
  .chain((set) => fc.array(fc.array(fc.constantFrom(...set), { maxLength: 15 }), { minLength: 1, maxLength: 12 }));

suite('HpackEncoder', () => {
  test('encodes any fields so that they decode to the same fields, with any sizes of the table', () => {
    fc.assert(
      fc.property(blocks, fc.array(fc.integer({ min: 0, max: 6_000 }), { maxLength: 12 }), (heads, sizes) => {
        const encoder = new HpackEncoder();
        const decoder = new HpackDecoder();
        for (const [index, fields] of heads.entries()) {
          const size = sizes[index];
          if (size !== undefined) {
            encoder.limitTable(Math.floor(size / 3));
            encoder.limitTable(size);
          }
          const [decoded] = decodeAll(decoder, [encode(encoder, fields)]);
          assert.deepEqual(decoded?.fields, fields);
        }
      }),
      { numRuns: 1_000 },
    );
  });

  test('sends names in lower case', () => {
    const [decoded] = decodeAll(new HpackDecoder(), [
      encode(new HpackEncoder(), [
        ['X-Custom', 'Value'],
        ['Content-Type', 'Text/HTML'],
      ]),
    ]);
    assert.deepEqual(decoded?.fields, [
      ['x-custom', 'Value'],
      ['content-type', 'Text/HTML'],
    ]);
  });

  test('sends a field that comes for the third time as one byte', () => {
    const encoder = new HpackEncoder();
    const lengths = [1, 2, 3].map(() => encode(encoder, [['server', 'a server with a name']]).length);
    assert.ok((lengths[1] as number) > 10);
    assert.equal(lengths[2], 1);
  });

  test('never puts a secret into a table', () => {
    const encoder = new HpackEncoder();
    for (const name of ['authorization', 'cookie', 'set-cookie', 'proxy-authorization']) {
      for (let count = 0; count < 3; count += 1) {
        const block = encode(encoder, [[name, 'secret']]);
        // RFC 7541 §6.2.3: the first four bits of a literal that is never indexed are 0001.
        assert.equal((block[0] as number) >> 4, 1);
      }
    }
  });
});

test('the Huffman code decodes to the encoded bytes and is as long as announced', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      const code = new Uint8Array(400);
      const end = huffmanEncode(code, 0, bytes, 0, bytes.length);
      assert.equal(end, huffmanLengthOf(bytes, 0, bytes.length));
      const decoded = new Uint8Array(800);
      assert.equal(huffmanDecode(code, 0, end, decoded, 0), bytes.length);
      assert.deepEqual(decoded.subarray(0, bytes.length), bytes);
    }),
    { numRuns: 2_000 },
  );
});
