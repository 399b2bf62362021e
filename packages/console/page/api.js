// The user's token, and requests to the console's API.

// The token is stored in sessionStorage, which the browser deletes when the tab closes. Unlike a cookie, the token is never sent by the
// browser itself.
const TOKEN_KEY = 'weir.token';
const SIGN_OUT_REASON_KEY = 'weir.ended';

export const token = () => sessionStorage.getItem(TOKEN_KEY) ?? '';

/** Stores the token and reloads the page, so that no data of the previous user stays. */
export function signInWith(newToken) {
  sessionStorage.setItem(TOKEN_KEY, newToken);
  location.reload();
}

/** Deletes the token and reloads the page, so that no data of the user stays. The reloaded page shows `reason`. */
export function signOut(reason = '') {
  sessionStorage.removeItem(TOKEN_KEY);
  sessionStorage.setItem(SIGN_OUT_REASON_KEY, reason);
  location.reload();
}

/** Returns the reason of the last sign-out, and deletes the stored reason. */
export function takeSignOutReason() {
  const reason = sessionStorage.getItem(SIGN_OUT_REASON_KEY) ?? '';
  sessionStorage.removeItem(SIGN_OUT_REASON_KEY);
  return reason;
}

export function authorizationHeaders(bearer = token()) {
  return bearer === '' ? {} : { authorization: `Bearer ${bearer}` };
}

/**
 * Resolves with the JSON of a successful response. Otherwise rejects with an Error whose message the page can show. The error has
 * `isUnreachable` if there was no response. After an error response it has the `status` of the response and the `authorization` header of
 * the request.
 */
export async function requestJson(path, { headers, ...init } = {}) {
  const requestHeaders = { ...authorizationHeaders(), ...headers };
  let response;
  try {
    response = await fetch(path, { ...init, headers: requestHeaders });
  } catch {
    throw Object.assign(new Error('the console does not answer'), { isUnreachable: true });
  }
  const body = await response.json().catch(() => undefined);
  if (response.ok) return body;
  const message = body?.error?.message ?? `the console answers with status ${response.status}`;
  throw Object.assign(new Error(message), { status: response.status, authorization: requestHeaders.authorization });
}

/** Creates a Suspension. `seconds` is the duration as text, or empty for a Suspension without an end. */
export function suspend(target, { message, seconds }) {
  const until = seconds === '' ? {} : { until: new Date(Date.now() + Number(seconds) * 1000).toISOString() };
  return requestJson('api/v1/suspensions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ target, message, ...until }),
  });
}

export function resume(name) {
  return requestJson(`api/v1/suspensions/${encodeURIComponent(name)}`, { method: 'DELETE' });
}
