import { token } from './token.js';

/** The headers of a request of whoever is signed in. */
export function signedBy(text = token()) {
  return text === '' ? {} : { authorization: `Bearer ${text}` };
}

/** Rejects with an Error whose message is meant for people; `away`: nobody answers; `status` of the answer. */
export async function ask(path, { headers, ...init } = {}) {
  let response;
  try {
    response = await fetch(path, { ...init, headers: { ...signedBy(), ...headers } });
  } catch {
    throw Object.assign(new Error('the console does not answer'), { away: true });
  }
  const body = await response.json().catch(() => undefined);
  if (response.ok) return body;
  const message = body?.error?.message ?? `the console answers ${response.status}`;
  throw Object.assign(new Error(message), { status: response.status });
}

export function suspend(target, { message, seconds }) {
  const until = seconds === '' ? {} : { until: new Date(Date.now() + Number(seconds) * 1000).toISOString() };
  return ask('api/v1/suspensions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ target, message, ...until }),
  });
}

export function resume(name) {
  return ask(`api/v1/suspensions/${encodeURIComponent(name)}`, { method: 'DELETE' });
}
