import { element, keepOnly, keyedList, setEmptyMessage, setText } from './dom.js';
import { bitRate, bytes, count, plural } from './format.js';
import { refusedNowText, refusedThisMonthText, totalOf } from './refusals.js';
import { sparkline, withPoint } from './sparkline.js';
import { stateIcon } from './state-icons.js';
import { detailsText } from './suspension-text.js';
import { topClientsView } from './top-clients.js';

/** Points of the graphs, by tenant name. Kept outside of the cards, because points may arrive before a tenant has a card. */
const pointsByTenant = new Map();

/** How cards are sorted, by the value of the selection. Equal cards are sorted by name. */
const ORDERS = {
  traffic: (a, b) => b.used.trafficThisMonth - a.used.trafficThisMonth,
  refused: (a, b) => totalOf(b.refused) - totalOf(a.refused),
  name: () => 0,
};

/** Creates the list of tenant cards. Calls `onSuspend(target, name)` when the user clicks Suspend. */
export function tenantsView(onSuspend) {
  const cards = new Map();
  const order = document.getElementById('tenant-sort');
  let tenants = [];
  const showCards = keyedList(
    document.getElementById('tenant-list'),
    (tenant) => tenant.name,
    (tenant) => {
      const card = tenantCard(tenant.name, onSuspend);
      cards.set(tenant.name, card);
      return card;
    },
  );
  const showSorted = () => {
    const compare = ORDERS[order.value];
    showCards([...tenants].sort((a, b) => compare(a, b) || (a.name < b.name ? -1 : 1)));
  };
  order.addEventListener('change', showSorted);
  return {
    /** Shows the tenants, each with the clients that were refused this month by reason. */
    show(items) {
      tenants = items;
      setEmptyMessage(
        'tenants',
        tenants.length > 0
          ? ''
          : 'No tenant yet. Apply a Service of type LoadBalancer, and its namespace appears here.',
      );
      showSorted();
      const names = new Set(tenants.map((tenant) => tenant.name));
      keepOnly(cards, names);
      keepOnly(pointsByTenant, names);
    },
    showHistory({ tenants }) {
      for (const tenant of tenants) pointsByTenant.set(tenant.name, tenant.points.map(pointOf));
    },
    showRates({ at, tenants }) {
      const now = Date.parse(at);
      for (const tenant of tenants) {
        const points = withPoint(pointsByTenant.get(tenant.name) ?? [], pointOf({ ...tenant, at: now }));
        pointsByTenant.set(tenant.name, points);
        cards.get(tenant.name)?.showRates(tenant, points, now);
      }
    },
  };
}

function pointOf(rate) {
  return { at: rate.at, in: rate.inBitsPerSecond, out: rate.outBitsPerSecond };
}

function tenantCard(name, onSuspend) {
  const state = element('span', { class: 'card-state' });
  const out = element('b', { class: 'figure' }, '–');
  const inbound = element('b', { class: 'figure' }, '–');
  const connections = element('span', { class: 'muted' }, ' ');
  const suspension = element('p', { class: 'message' });
  const refused = element('div', { class: 'refused' }, element('span'), element('span', { class: 'muted' }));
  const [refusedNow, refusedThisMonth] = refused.children;
  const graph = sparkline();
  const month = element('span');
  const fill = element('div', { class: 'meter-fill' });
  const meter = element(
    'div',
    { class: 'meter', role: 'meter', 'aria-label': `traffic of ${name} this month`, 'aria-valuemin': '0' },
    fill,
  );
  const services = element('span', { class: 'muted' });
  const suspend = element(
    'button',
    { type: 'button', onclick: () => onSuspend({ type: 'Tenant', tenant: name }, `tenant ${name}`) },
    'Suspend…',
  );
  suspend.setAttribute('aria-label', `Suspend tenant ${name}`);
  const node = element(
    'li',
    { class: 'card' },
    element('div', { class: 'card-head' }, element('h3', {}, name), state, suspend),
    suspension,
    element(
      'div',
      { class: 'rates' },
      element('div', {}, element('span', { class: 'muted' }, 'out'), out),
      element('div', {}, element('span', { class: 'muted' }, 'in'), inbound),
      graph.node,
    ),
    connections,
    refused,
    element('div', { class: 'month' }, month, meter),
    services,
    topClientsView(name),
  );
  return {
    node,
    update(tenant) {
      node.classList.toggle('is-suspended', tenant.suspension !== null);
      state.replaceChildren(...(tenant.suspension === null ? [] : [stateIcon('Suspended', 'suspended')]));
      suspend.hidden = tenant.suspension !== null || !tenant.maySuspend;
      suspension.hidden = tenant.suspension === null;
      setText(suspension, tenant.suspension === null ? '' : detailsText(tenant.suspension));
      const refusedText = refusedThisMonthText(tenant.refused);
      setText(refusedThisMonth, refusedText === '' ? '' : `refused ${refusedText}`);
      showMonth({ month, meter, fill }, tenant);
      setText(services, servicesText(tenant));
    },
    showRates(rate, points, now) {
      setText(out, bitRate(rate.outBitsPerSecond));
      setText(inbound, bitRate(rate.inBitsPerSecond));
      setText(
        connections,
        `${count(rate.newConnectionsPerSecond)} new connections/s, ${count(rate.requestsPerSecond)} requests/s`,
      );
      const refusing = refusedNowText(rate.refusedPerSecond);
      setText(refusedNow, refusing === '' ? '' : `refuses ${refusing}`);
      graph.update(points, now);
    },
  };
}

function showMonth({ month, meter, fill }, { used, limits }) {
  const limit = limits.trafficPerMonth;
  const share = limit === undefined ? 0 : limit === 0 ? 1 : used.trafficThisMonth / limit;
  setText(
    month,
    limit === undefined
      ? `${bytes(used.trafficThisMonth)} this month, no limit`
      : `${bytes(used.trafficThisMonth)} of ${bytes(limit)} this month (${Math.floor(share * 100)} %)`,
  );
  meter.hidden = limit === undefined;
  meter.setAttribute('aria-valuenow', String(used.trafficThisMonth));
  meter.setAttribute('aria-valuemax', String(limit ?? 0));
  meter.classList.toggle('is-near', share >= 0.8 && share < 1);
  meter.classList.toggle('is-over', share >= 1);
  fill.style.inlineSize = `${Math.min(100, share * 100)}%`;
}

function servicesText({ services, used, limits }) {
  const parts = Object.entries(services)
    .filter(([, number]) => number > 0)
    .map(([state, number]) => `${count(number)} ${state.toLowerCase()}`);
  const limit = limits.services === undefined ? '' : ` of ${count(limits.services)} allowed`;
  return `${plural(used.services, 'Service')}${limit}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}`;
}
