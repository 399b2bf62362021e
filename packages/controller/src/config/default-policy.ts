import { readFileSync } from 'node:fs';
import { DEFAULT_POLICY, type Problem, type TenantPolicySpec } from '@weir/model';
import { errorMessage, fileError, UsageError } from '@weir/runtime';
import { parse } from 'yaml';
import { Fields } from '../parse/fields.ts';
import { readTenantPolicySpec, unusedFieldProblems } from '../parse/tenant-policy.ts';

/**
 * Reads the default policy from a YAML or JSON file. The default policy applies to namespaces that no TenantPolicy selects. The file
 * contains either the `spec` of a TenantPolicy or a complete TenantPolicy. If `path` is undefined, returns a policy whose only limit is
 * the default of `tableBytes`. Throws a `UsageError` that lists all mistakes.
 */
export function loadDefaultPolicy(path: string | undefined): DefaultPolicy {
  return path === undefined ? { policy: DEFAULT_POLICY, problems: [] } : parseDefaultPolicy(path, readText(path));
}

export interface DefaultPolicy {
  readonly policy: TenantPolicySpec;
  /** Warnings about fields that this version of Weir does not enforce. */
  readonly problems: readonly Problem[];
}

export function parseDefaultPolicy(path: string, text: string): DefaultPolicy {
  let content: unknown;
  try {
    content = parse(text, { prettyErrors: false });
  } catch (error) {
    throw new UsageError(`default tenant policy ${path} is not valid YAML: ${errorMessage(error)}`, { cause: error });
  }
  const mistakes: string[] = [];
  const document = new Fields(content ?? {}, mistakes);
  const spec = document.has('kind') ? document.object('spec') : document;
  const policy = readTenantPolicySpec(spec, (mistake) => mistakes.push(mistake));
  if (mistakes.length > 0) throw new UsageError(`default tenant policy ${path}: ${mistakes.join('; ')}`);
  return { policy, problems: unusedFieldProblems(path, spec) };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`default tenant policy: ${fileError(error, 'read', path).message}`, { cause: error });
  }
}
