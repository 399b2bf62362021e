// Which parts of the page there are for whoever looks at it.

const OF_OPERATORS = ['proxies'];
const OF_ALL = ['tenants', 'services', 'problems'];

/** `namespaces` as of `/api/v1/me`; undefined: nobody is signed in. */
export function showSections(namespaces) {
  const isOperator = namespaces === null;
  const seesAny = isOperator || (namespaces?.length ?? 0) > 0;
  for (const name of [...OF_ALL, ...OF_OPERATORS]) {
    const isShown = OF_OPERATORS.includes(name) ? isOperator : seesAny;
    document.getElementById(name).hidden = !isShown;
    document.querySelector(`nav a[href="#${name}"]`).hidden = !isShown;
  }
}
