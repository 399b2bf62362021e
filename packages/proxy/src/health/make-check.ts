import type { RunCheck } from './check-book.ts';
import { checkTcp } from './tcp-check.ts';

/** As the Service asks for it. */
export const runHealthCheck: RunCheck = (wanted, signal) => {
  const { check } = wanted;
  return check.kind === 'http' ? checkHttp(wanted, check, signal) : checkTcp(wanted, signal);
};

/** Its client is a tenth of all that a proxy loads, and most fleets have no such check. */
const checkHttp: typeof import('./http-check.ts')['checkHttp'] = async (...wanted) => {
  const loaded = await import('./http-check.ts');
  return loaded.checkHttp(...wanted);
};
