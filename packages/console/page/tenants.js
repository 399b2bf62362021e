import { el, forgetOthers, keyedList, say, sayEmpty } from './dom.js';
import { bitRate, bytes, count, plural } from './format.js';
import { stateMark } from './marks.js';
import { sparkline, withPoint } from './sparkline.js';

const points = new Map();

/** The tenants as cards. `onSuspend(target, name)` is asked for a cut-off. */
export function tenantsView(onSuspend) {
  const cards = new Map();
  const show = keyedList(
    document.getElementById('tenant-list'),
    (tenant) => tenant.name,
    (tenant) => {
      const card = tenantCard(tenant.name, onSuspend);
      cards.set(tenant.name, card);
      return card;
    },
  );
  return {
    show(tenants) {
      sayEmpty(
        'tenants',
        tenants.length > 0
          ? ''
          : 'No tenant yet: apply a Service of type LoadBalancer, and its namespace appears here.',
      );
      const byMonth = [...tenants].sort(
        (a, b) => b.used.trafficThisMonth - a.used.trafficThisMonth || (a.name < b.name ? -1 : 1),
      );
      show(byMonth);
      const names = new Set(tenants.map((tenant) => tenant.name));
      forgetOthers(cards, names);
      forgetOthers(points, names);
    },
    history({ tenants }) {
      for (const tenant of tenants) points.set(tenant.name, tenant.points.map(pointOf));
    },
    rates({ at, tenants }) {
      const now = Date.parse(at);
      for (const tenant of tenants) {
        const known = withPoint(points.get(tenant.name) ?? [], pointOf({ ...tenant, at: now }));
        points.set(tenant.name, known);
        cards.get(tenant.name)?.rates(tenant, known, now);
      }
    },
  };
}

function pointOf(rate) {
  return { at: rate.at, in: rate.inBitsPerSecond, out: rate.outBitsPerSecond };
}

function tenantCard(name, onSuspend) {
  const state = el('span', { class: 'card-state' });
  const out = el('b', { class: 'figure' }, '–');
  const inward = el('b', { class: 'figure' }, '–');
  const connections = el('span', { class: 'quiet' }, ' ');
  const graph = sparkline();
  const month = el('span');
  const fill = el('div', { class: 'meter-fill' });
  const meter = el(
    'div',
    { class: 'meter', role: 'meter', 'aria-label': `traffic of ${name} this month`, 'aria-valuemin': '0' },
    fill,
  );
  const services = el('span', { class: 'quiet' });
  const suspend = el(
    'button',
    { type: 'button', onclick: () => onSuspend({ type: 'Tenant', tenant: name }, `tenant ${name}`) },
    'Suspend…',
  );
  suspend.setAttribute('aria-label', `Suspend tenant ${name}`);
  const node = el(
    'li',
    { class: 'card' },
    el('div', { class: 'card-head' }, el('h3', {}, name), state, suspend),
    el(
      'div',
      { class: 'rates' },
      el('div', {}, el('span', { class: 'quiet' }, 'out'), out),
      el('div', {}, el('span', { class: 'quiet' }, 'in'), inward),
      graph.node,
    ),
    connections,
    el('div', { class: 'month' }, month, meter),
    services,
  );
  return {
    node,
    update(tenant) {
      node.classList.toggle('is-suspended', tenant.suspension !== null);
      state.replaceChildren(...(tenant.suspension === null ? [] : [stateMark('Suspended', 'suspended')]));
      suspend.hidden = tenant.suspension !== null || !tenant.maySuspend;
      showMonth({ month, meter, fill }, tenant);
      say(services, servicesText(tenant));
    },
    rates(rate, known, now) {
      say(out, bitRate(rate.outBitsPerSecond));
      say(inward, bitRate(rate.inBitsPerSecond));
      say(
        connections,
        `${count(rate.newConnectionsPerSecond)} new connections/s, ${count(rate.requestsPerSecond)} requests/s`,
      );
      graph.update(known, now);
    },
  };
}

function showMonth({ month, meter, fill }, { used, limits }) {
  const limit = limits.trafficPerMonth;
  const share = limit === undefined ? 0 : limit === 0 ? 1 : used.trafficThisMonth / limit;
  say(
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
