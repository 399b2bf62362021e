import { readFileSync } from 'node:fs';
import { type Problem, type TenantPolicySpec, UNRESTRICTED_POLICY } from '@weir/model';
import { errorMessage, fileError, UsageError } from '@weir/runtime';
import { parse } from 'yaml';
import { Fields } from '../parse/fields.ts';
import { readTenantPolicySpec, unenforcedProblems } from '../parse/tenant-policy.ts';

/**
 * The policy of namespaces that no TenantPolicy selects: a file (YAML or JSON) with what would stand in `spec`, or with a whole
 * TenantPolicy. Throws `UsageError` with all mistakes.
 */
export function loadDefaultPolicy(path: string | undefined): DefaultPolicy {
  return path === undefined ? { policy: UNRESTRICTED_POLICY, problems: [] } : parseDefaultPolicy(path, readText(path));
}

export interface DefaultPolicy {
  readonly policy: TenantPolicySpec;
  /** What of it is not enforced. */
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
  const whole = new Fields(content ?? {}, mistakes);
  const spec = whole.has('kind') ? whole.object('spec') : whole;
  const policy = readTenantPolicySpec(spec);
  if (mistakes.length > 0) throw new UsageError(`default tenant policy ${path}: ${mistakes.join('; ')}`);
  return { policy, problems: unenforcedProblems(path, spec) };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new UsageError(`default tenant policy: ${fileError(error, 'read', path).message}`, { cause: error });
  }
}
