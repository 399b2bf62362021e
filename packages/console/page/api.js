/** Rejects with an Error whose message is meant for people. */
export async function ask(path, init) {
  let response;
  try {
    response = await fetch(path, init);
  } catch {
    throw Object.assign(new Error('the console does not answer'), { away: true });
  }
  const body = await response.json().catch(() => undefined);
  if (response.ok) return body;
  throw new Error(body?.error?.message ?? `the console answers ${response.status}`);
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

/** Live rates; the browser connects again by itself. `onState(isOpen)`, `onHistory(data)`, `onRates(data)`. */
export function live({ onState, onHistory, onRates }) {
  const source = new EventSource('api/v1/live');
  source.addEventListener('open', () => onState(true));
  source.addEventListener('error', () => {
    onState(false);
    // A refusal (503) ends an EventSource for good.
    if (source.readyState === EventSource.CLOSED) setTimeout(() => live({ onState, onHistory, onRates }), 2000);
  });
  source.addEventListener('history', (event) => onHistory(JSON.parse(event.data)));
  source.addEventListener('rates', (event) => onRates(JSON.parse(event.data)));
}
