// What an operator reads of the values, and what a typo fails against, come from the comments of values.yaml.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { golden } from '@weir/testkit';
import { CRDS_CHART, chartFile, chartMetadata, WEIR_CHART } from '../../src/chart/helm.ts';
import { parseValues } from '../../src/chart/values.ts';
import { valuesSchema, valuesTables } from '../../src/chart/values-reference.ts';

const BETWEEN = /(<!-- values: written by e2e\/test\/chart\/reference\.test\.ts -->\n).*(<!-- end of values -->)/s;

describe('of the comments of values.yaml are made', () => {
  const values = parseValues(chartFile(WEIR_CHART, 'values.yaml'));

  for (const chart of [WEIR_CHART, CRDS_CHART]) {
    test(`the schema that helm checks values of ${chartMetadata(chart).name} by`, () => {
      const dependencies = (chartMetadata(chart).dependencies ?? []).map(({ name, alias }) => alias ?? name);
      const own = parseValues(chartFile(chart, 'values.yaml'));
      golden(new URL('values.schema.json', chart), valuesSchema(own, dependencies));
    });
  }

  test("the tables of the chart's README", () => {
    const page = chartFile(WEIR_CHART, 'README.md');
    assert.match(page, BETWEEN);
    golden(
      new URL('README.md', WEIR_CHART),
      page.replace(BETWEEN, (_, begin, end) => `${begin}\n${valuesTables(values)}\n\n${end}`),
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

  test('says by a list of words what is allowed', () => {
    const text = '# How much.\n#   Little  not much,\n#           or less.\n#   ""      nothing.\nhow: ""\n';
    assert.deepEqual(schemaOf(text), { how: { description: 'How much.', type: 'string', enum: ['Little', ''] } });
    assert.equal(
      valuesTables(parseValues(text)).split('\n').at(-1),
      '| `how` | `""` | How much.<br>`Little`: not much, or less.<br>`""`: nothing. |',
    );
  });

  test('leaves the type to the default, and adds to it by @schema', () => {
    const text = '# Some.\n# @schema {minimum: 1}\nsome: 2\n# Until.\n# @schema duration\nuntil: 5s\n# Any.\nany: {}\n';
    assert.deepEqual(schemaOf(text), {
      some: { description: 'Some.', type: 'integer', minimum: 1 },
      until: { description: 'Until.', type: 'string', pattern: '^([0-9]+(d|h|m|s|ms))+$' },
      any: { description: 'Any.', type: 'object' },
    });
  });

  test('is of the value below it, and of none when a blank line follows', () => {
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

  test('that is missing, misplaced or of an unknown type is told with the value', () => {
    assert.throws(() => parseValues('a:\n  b: 1\n'), /values\.yaml: a\.b: no comment says what it means/);
    assert.throws(() => parseValues('# A.\na: 1 # one\n'), /a: a comment stands behind it/);
    assert.throws(() => parseValues('# A.\n# @schema nonsense\na: 1\n'), /there is no such type; use .*duration/);
    assert.throws(() => valuesSchema(parseValues('# A.\na: null\n'), []), /a: nothing says its type/);
  });
});
