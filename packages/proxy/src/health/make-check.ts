import type { MakeCheck } from './check-book.ts';
import { checkHttp } from './http-check.ts';
import { checkTcp } from './tcp-check.ts';

/** As the Service asks for it. */
export const makeCheck: MakeCheck = (wanted, signal) => {
  const { check } = wanted;
  return check.kind === 'http' ? checkHttp(wanted, check.path, signal) : checkTcp(wanted, signal);
};
