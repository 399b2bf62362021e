// Generates the values schema and the tables of the README from the comments of values.yaml, and compares them with the files.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { golden } from '@weir/testkit';
import { CRDS_CHART, chartFile, chartMetadata, WEIR_CHART } from '../../src/chart/helm.ts';
import { parseValues } from '../../src/chart/values.ts';
import { valuesSchema, valuesTables } from '../../src/chart/values-reference.ts';

const VALUES_SECTION =
  /(<!-- values: written by e2e\/test\/chart\/reference\.test\.ts -->\n).*(<!-- end of values -->)/s;

describe('generated from the comments of values.yaml', () => {
  const values = parseValues(chartFile(WEIR_CHART, 'values.yaml'));

  for (const chart of [WEIR_CHART, CRDS_CHART]) {
    test(`the values schema of ${chartMetadata(chart).name}`, () => {
      const dependencies = (chartMetadata(chart).dependencies ?? []).map(({ name, alias }) => alias ?? name);
      const own = parseValues(chartFile(chart, 'values.yaml'));
      golden(new URL('values.schema.json', chart), valuesSchema(own, dependencies));
    });
  }

  test('the tables of the README of the chart', () => {
    const page = chartFile(WEIR_CHART, 'README.md');
    assert.match(page, VALUES_SECTION);
    golden(
      new URL('README.md', WEIR_CHART),
      page.replace(VALUES_SECTION, (_, begin, end) => `${begin}\n${valuesTables(values)}\n\n${end}`),
    );
  });
});

describe('a comment of values.yaml', () => {
  const schemaOf = (text: string): unknown => {
    const { properties } = valuesSchema(parseValues(text), []) as { properties: Record<string, object> };
    const { global, ...own } = properties;
    assert.deepEqual(global, { type: 'object' });
    return own;
  };

  test('lists the allowed words', () => {
    const text = '# How much.\n#   Little  not much,\n#           or less.\n#   ""      nothing.\nhow: ""\n';
    assert.deepEqual(schemaOf(text), { how: { description: 'How much.', type: 'string', enum: ['Little', ''] } });
    assert.equal(
      valuesTables(parseValues(text)).split('\n').at(-1),
      '| `how` | `""` | How much.<br>`Little`: not much, or less.<br>`""`: nothing. |',
    );
  });

  test('refines the type of the default by @schema', () => {
    const text = '# Some.\n# @schema {minimum: 1}\nsome: 2\n# Until.\n# @schema duration\nuntil: 5s\n# Any.\nany: {}\n';
    assert.deepEqual(schemaOf(text), {
      some: { description: 'Some.', type: 'integer', minimum: 1 },
      until: { description: 'Until.', type: 'string', pattern: '^([0-9]+(d|h|m|s|ms))+$' },
      any: { description: 'Any.', type: 'object' },
    });
  });

  test('describes the value below it, unless a blank line follows', () => {
    const text =
      '# Of the file.\n\n# Of the section.\nsection:\n  # Of a,\n  # in two lines.\n  a: x\n\n  # Of b.\n  b: true\n';
    assert.deepEqual(schemaOf(text), {
      section: {
        description: 'Of the section.',
        type: 'object',
        properties: {
          a: { description: 'Of a, in two lines.', type: 'string' },
          b: { description: 'Of b.', type: 'boolean' },
        },
        additionalProperties: false,
      },
    });
  });

  test('that is missing, misplaced or has an unknown type is reported with the value', () => {
    assert.throws(() => parseValues('a:\n  b: 1\n'), /values\.yaml: a\.b: add a comment that describes the value/);
    assert.throws(() => parseValues('# A.\na: 1 # one\n'), /a: move the comment above the key/);
    assert.throws(() => parseValues('# A.\n# @schema nonsense\na: 1\n'), /unknown type; expected .*duration/);
    assert.throws(() => valuesSchema(parseValues('# A.\na: null\n'), []), /a: cannot derive the type from the default/);
  });
});
