import { el, keyedList, say, sayEmpty } from './dom.js';
import { count, time } from './format.js';
import { stateMark } from './marks.js';

export function proxiesView() {
  const table = document.getElementById('proxy-table');
  const show = keyedList(document.getElementById('proxy-rows'), (proxy) => `${proxy.node}/${proxy.life}`, proxyRow);
  return (proxies, position) => {
    sayEmpty(
      'proxies',
      proxies.length > 0 ? '' : 'No proxy yet: label a node role=loadbalancer, and its proxy appears here.',
    );
    table.hidden = proxies.length === 0;
    show(proxies.map((proxy) => ({ ...proxy, position })));
  };
}

function proxyRow() {
  const cell = (label, className = '') => el('td', { 'data-label': label, class: className });
  const name = el('span');
  const since = el('div', { class: 'quiet' });
  const node = el('th', { scope: 'row' }, name, since);
  const state = cell('State');
  const addresses = cell('Addresses');
  const ports = cell('Ports open', 'number');
  const connections = cell('Connections', 'number');
  const table = cell('Table', 'number');
  return {
    node: el('tr', {}, node, state, addresses, ports, connections, table),
    update(proxy) {
      say(name, proxy.node);
      say(since, proxy.startedAt === null ? 'not heard' : `since ${time(proxy.startedAt)}`);
      if (state.dataset.state !== proxy.state) state.replaceChildren(stateMark(proxy.state));
      state.dataset.state = proxy.state;
      say(addresses, proxy.addresses.join(', '));
      const { listening, bound, failed } = proxy.listeners;
      say(ports, `${listening} of ${bound}${failed > 0 ? `, ${failed} failed` : ''}`);
      say(connections, count(proxy.connections));
      say(table, appliedText(proxy));
    },
  };
}

/** Whether it has the newest table; a proxy that lags is told apart from one that is up to date. */
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
    sayEmpty('problems', problems.length > 0 ? '' : 'No problem is known.');
    number.hidden = problems.length === 0;
    say(number, count(problems.length));
    show(problems);
  };
}

function problemItem(problem) {
  const heals = problem.heals ? el('span', { class: 'quiet' }, ' (goes away by itself when its cause does)') : '';
  return {
    node: el(
      'li',
      {},
      el('div', {}, stateMark(problem.severity, problem.code), ' ', el('b', {}, problem.subject), heals),
      el('div', { class: 'message' }, problem.message),
    ),
    update() {},
  };
}
