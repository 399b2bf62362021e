import { test } from 'node:test';
import { annotationGrammars } from '@weir/model';
import { golden } from '@weir/testkit';
import { stringify } from 'yaml';

const HEADER = `# The grammar of the annotations weir.dev/…, for the admission policy. Generated from packages/model/src/settings; to update, run
# UPDATE_GOLDEN=1 npm test -- admission/annotation-grammar
`;

test("the chart's annotation grammar equals the model's", () => {
  golden(
    new URL('../../../../../charts/weir/annotation-grammar.yaml', import.meta.url),
    HEADER + stringify(annotationGrammars(), { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false }),
  );
});
