// Generates docs/api.md from the CRDs and compares it with the page, so that the page and the CRDs agree.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { golden } from '@weir/testkit';
import { customResourcePage, fieldTable } from '../src/docs/custom-resource-page.ts';

test('docs/api.md equals the page generated from charts/weir-crds', () => {
  golden(new URL('../../docs/api.md', import.meta.url), customResourcePage());
});

test('rejects a field without description and names its path', () => {
  const schema = { properties: { limits: { description: 'Limits.', properties: { ports: { type: 'integer' } } } } };
  assert.throws(() => fieldTable(schema, 'spec'), /^Error: spec\.limits\.ports: add a description$/);
});

test('the table has path, type, bounds, default, meaning and rules of a field', () => {
  const schema = {
    required: ['kind'],
    properties: {
      kind: { type: 'string', enum: ['A', 'B'], default: 'A', description: 'One | the other.' },
      items: {
        type: 'array',
        maxItems: 3,
        description: 'Some.',
        items: { type: 'integer', minimum: 1, maximum: 9, 'x-kubernetes-validations': [{ message: 'no two alike' }] },
      },
    },
  };
  assert.deepEqual(fieldTable(schema, 'spec').split('\n').slice(2), [
    '| `spec.kind`, required | `A`, `B` | One \\| the other. Default: `A`. |',
    '| `spec.items` | list of integer, 1 to 9; up to 3 | Some. Must hold: no two alike. |',
  ]);
});
