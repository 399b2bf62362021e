import { element, keepOnly, keyedList, setEmptyMessage, setText } from './dom.js';
import { bitRate } from './format.js';
import { refusedNowText, refusedThisMonthText, totalOf } from './refusals.js';
import { stateIcon } from './state-icons.js';

/** Maximum number of rows, because a longer table is slow and hard to read. The user finds all other Services with the filter. */
const MAX_ROWS = 200;

export function servicesView(onSuspend) {
  const rows = new Map();
  const table = document.getElementById('service-table');
  const more = document.getElementById('service-more');
  const filter = document.getElementById('service-filter');
  const order = document.getElementById('service-sort');
  let services = [];
  const show = keyedList(
    document.getElementById('service-rows'),
    (service) => service.uid,
    (service) => {
      const row = serviceRow(service, onSuspend);
      rows.set(nameOf(service), row);
      return row;
    },
  );
  const refresh = () => {
    const query = filter.value.trim().toLowerCase();
    const found = services.filter((service) => searchTextOf(service).includes(query));
    // The console sends the Services by name, and equal items keep their order.
    const matching = order.value === 'refused' ? found.sort((a, b) => totalOf(b.refused) - totalOf(a.refused)) : found;
    const shown = matching.slice(0, MAX_ROWS);
    show(shown);
    keepOnly(rows, new Set(shown.map(nameOf)));
    table.hidden = matching.length === 0;
    more.hidden = matching.length <= MAX_ROWS;
    setText(more, `and ${matching.length - MAX_ROWS} more; use the filter to see them`);
    if (services.length === 0) {
      setEmptyMessage(
        'services',
        'No Service yet. Weir serves Services of type LoadBalancer with its loadBalancerClass.',
      );
    } else {
      setEmptyMessage('services', matching.length === 0 ? `No Service matches "${filter.value}".` : '');
    }
  };
  filter.addEventListener('input', refresh);
  order.addEventListener('change', refresh);
  return {
    /** Shows the Services, each with the clients that were refused this month by reason. */
    show(items) {
      services = items;
      refresh();
    },
    showRates({ services: rates }) {
      for (const rate of rates) rows.get(nameOf(rate))?.showRates(rate);
    },
  };
}

export const nameOf = ({ namespace, name }) => `${namespace}/${name}`;

function searchTextOf(service) {
  const { tenant, state, reason, addresses } = service;
  return [nameOf(service), tenant, state, reason, ...addresses].join(' ').toLowerCase();
}

function serviceRow({ namespace, name, tenant }, onSuspend) {
  const fullName = `${namespace}/${name}`;
  const cell = (label, ...children) => element('td', { 'data-label': label }, ...children);
  const state = element('div');
  const message = element('div', { class: 'message' });
  const addresses = element('div', { class: 'addresses' });
  const endpoints = cell('Endpoints');
  endpoints.className = 'short';
  const out = cell('Out', '–');
  const inbound = cell('In', '–');
  out.className = 'number';
  inbound.className = 'number';
  const refusedNow = element('div');
  const refusedThisMonth = element('div', { class: 'message' });
  const refused = cell('Refused', refusedNow, refusedThisMonth);
  refused.className = 'refused';
  const target = { type: 'Service', namespace, service: name };
  const suspend = element(
    'button',
    {
      type: 'button',
      'aria-label': `Suspend Service ${fullName}`,
      onclick: () => onSuspend(target, `Service ${fullName}`),
    },
    'Suspend…',
  );
  const node = element(
    'tr',
    {},
    element(
      'th',
      { scope: 'row' },
      fullName,
      element('div', { class: 'muted' }, tenant === null ? 'tenant in dispute' : `tenant ${tenant}`),
    ),
    cell('State', state, message),
    cell('Addresses', addresses),
    endpoints,
    out,
    inbound,
    refused,
    cell('', suspend),
  );
  return {
    node,
    update(service) {
      const icon = service.state === 'Programmed' && service.conditions.some(isProblem) ? 'warning' : service.state;
      if (state.dataset.state !== `${icon} ${service.state}`) state.replaceChildren(stateIcon(icon, service.state));
      state.dataset.state = `${icon} ${service.state}`;
      setText(message, messageFor(service));
      setText(addresses, addressesTextFor(service));
      setText(endpoints, `${service.endpoints.ready} of ${service.endpoints.total} ready`);
      setText(refusedThisMonth, refusedThisMonthText(service.refused));
      suspend.hidden = service.state === 'Suspended' || !service.maySuspend;
    },
    showRates(rate) {
      setText(out, bitRate(rate.outBitsPerSecond));
      setText(inbound, bitRate(rate.inBitsPerSecond));
      setText(refusedNow, refusedNowText(rate.refusedPerSecond) || '–');
    },
  };
}

/** Whether a condition says that a served Service is not served as it should be. */
function isProblem({ type, status }) {
  return (type === 'Degraded' && status !== 'False') || (type === 'Accepted' && status === 'False');
}

/**
 * Returns the text below the state of a Service: the conditions that report a problem if the Service is programmed, otherwise the reason
 * for the state. Adds the errors of ports.
 */
function messageFor({ state, reason, message, conditions, portErrors }) {
  const messages =
    state === 'Programmed'
      ? conditions.filter(isProblem).map((condition) => `${condition.reason}: ${condition.message}`)
      : [`${reason}: ${message}`];
  const otherPortErrors = portErrors.filter((error) => !messages.some((text) => text.includes(error.message)));
  return [...messages, ...otherPortErrors.map((error) => `${error.reason}: ${error.message}`)].join('; ');
}

function addressesTextFor({ addresses, ports }) {
  const portNames = [...new Set(ports.map(({ port, protocol }) => `${port}/${protocol}`))].join(', ');
  return addresses.length === 0 ? '–' : `${addresses.join(', ')} port ${portNames}`;
}
