const TENANT_SECTIONS = ['tenants', 'services', 'problems', 'history'];
const OPERATOR_SECTIONS = ['proxies'];

/** Shows the sections that the user may see. `namespaces` comes from `/api/v1/me`, and is undefined if no user is signed in. */
export function showSections(namespaces) {
  const isOperator = namespaces === null;
  const hasNamespace = isOperator || (namespaces?.length ?? 0) > 0;
  for (const name of TENANT_SECTIONS) setShown(name, hasNamespace);
  for (const name of OPERATOR_SECTIONS) setShown(name, isOperator);
}

function setShown(name, isShown) {
  document.getElementById(name).hidden = !isShown;
  document.querySelector(`nav a[href="#${name}"]`).hidden = !isShown;
}
