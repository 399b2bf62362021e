const ALLOWED_LICENCES: ReadonlySet<string> = new Set([
  'MIT',
  'ISC',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'Apache-2.0',
  '0BSD',
  'Python-2.0',
  'PSF-2.0',
  'Unlicense',
  'BlueOak-1.0.0',
  'CC0-1.0',
]);

/** Whether an SPDX expression lets us ship: of alternatives one is enough, of what holds together each. No `WITH`, no nesting. */
export function isAllowedLicence(expression: string): boolean {
  const alternatives = expression.replace(/^\((.*)\)$/, '$1').split(' OR ');
  return alternatives.some((each) => each.split(' AND ').every((name) => ALLOWED_LICENCES.has(name)));
}

/** As docs/dependencies.md lists them. */
export const allowedLicenceNames: readonly string[] = [...ALLOWED_LICENCES];
