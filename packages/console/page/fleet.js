import { element, keyedList, setEmptyMessage, setText } from './dom.js';
import { count, time } from './format.js';
import { stateIcon } from './state-icons.js';

export function proxiesView() {
  const table = document.getElementById('proxy-table');
  const show = keyedList(document.getElementById('proxy-rows'), (proxy) => `${proxy.node}/${proxy.life}`, proxyRow);
  return (proxies, position) => {
    setEmptyMessage(
      'proxies',
      proxies.length > 0 ? '' : 'No proxy yet. Give a node the label role=loadbalancer, and its proxy appears here.',
    );
    table.hidden = proxies.length === 0;
    show(proxies.map((proxy) => ({ ...proxy, position })));
  };
}

function proxyRow() {
  const cell = (label, className = '') => element('td', { 'data-label': label, class: className });
  const name = element('span');
  const since = element('div', { class: 'muted' });
  const node = element('th', { scope: 'row' }, name, since);
  const state = cell('State');
  const addresses = cell('Addresses');
  const ports = cell('Ports open', 'number');
  const connections = cell('Connections', 'number');
  const table = cell('Table', 'number');
  return {
    node: element('tr', {}, node, state, addresses, ports, connections, table),
    update(proxy) {
      setText(name, proxy.node);
      setText(since, proxy.startedAt === null ? 'no heartbeat' : `since ${time(proxy.startedAt)}`);
      if (state.dataset.state !== proxy.state) state.replaceChildren(stateIcon(proxy.state));
      state.dataset.state = proxy.state;
      setText(addresses, proxy.addresses.join(', '));
      const { listening, bound, failed } = proxy.listeners;
      setText(ports, `${listening} of ${bound}${failed > 0 ? `, ${failed} failed` : ''}`);
      setText(connections, count(proxy.connections));
      setText(table, appliedText(proxy));
    },
  };
}

/** Returns the revision of the proxy's table, and whether a newer revision exists. */
function appliedText({ applied, position }) {
  if (applied === null) return 'none yet';
  return applied.id === position?.id
    ? `${applied.revision}, newest`
    : `${applied.revision}, newest is ${position?.revision ?? '?'}`;
}

export function problemsView() {
  const show = keyedList(
    document.getElementById('problem-list'),
    (problem) => `${problem.code}|${problem.subject}|${problem.message}`,
    problemItem,
  );
  const number = document.getElementById('problem-count');
  return (problems) => {
    setEmptyMessage('problems', problems.length > 0 ? '' : 'No problems.');
    number.hidden = problems.length === 0;
    setText(number, count(problems.length));
    show(problems);
  };
}

function problemItem(problem) {
  const heals = problem.heals ? element('span', { class: 'muted' }, ' (disappears once its cause is gone)') : '';
  return {
    node: element(
      'li',
      {},
      element('div', {}, stateIcon(problem.severity, problem.code), ' ', element('b', {}, problem.subject), heals),
      element('div', { class: 'message' }, problem.message),
    ),
    update() {},
  };
}
