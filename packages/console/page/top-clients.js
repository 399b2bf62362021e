// The clients of one tenant with the most bytes and connections. Read when the user opens the list.
import { requestJson } from './api.js';
import { element, setText } from './dom.js';
import { bytes, count, time } from './format.js';

const MAX_ROWS = 10;

/** Returns a closed list for the card of a tenant. */
export function topClientsView(tenant) {
  const content = element('div');
  const node = element('details', { class: 'top-clients' }, element('summary', {}, 'Top clients'), content);
  node.addEventListener('toggle', async () => {
    if (!node.open) return;
    setText(content, 'Reading …');
    try {
      const found = await requestJson(`api/v1/tenants/${encodeURIComponent(tenant)}/top-clients`);
      content.replaceChildren(...parts(found));
    } catch (error) {
      setText(content, sentence(error.message));
    }
  });
  return node;
}

function parts({ since, bytes: byBytes, connections, missing }) {
  return [
    element('p', { class: 'muted' }, `Since ${time(new Date(since))}`),
    ...list('Bytes', byBytes, bytes),
    ...list('Connections', connections, count),
    ...missing.map(({ node, problem }) => element('p', { class: 'muted' }, `Without node ${node}: ${problem}`)),
  ];
}

function list(title, { clients }, text) {
  if (clients.length === 0) return [element('p', {}, `${title}: no client`)];
  const rows = clients.slice(0, MAX_ROWS).map((client) => row(client, text));
  return [element('h4', {}, title), element('ul', { class: 'client-list' }, ...rows)];
}

/** Shows the bounds of an amount that is not exact. */
function row({ client, estimate, error }, text) {
  const amount = error === 0 ? text(estimate) : `${text(estimate - error)} to ${text(estimate)}`;
  return element('li', {}, element('span', {}, client), element('b', {}, amount));
}

const sentence = (message) => `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
