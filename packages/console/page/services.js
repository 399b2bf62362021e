import { el, forgetOthers, keyedList, say, sayEmpty } from './dom.js';
import { bitRate } from './format.js';
import { stateMark } from './marks.js';

/** More rows than anybody reads; the filter finds the others. */
const MOST_ROWS = 200;

export function servicesView(onSuspend) {
  const rows = new Map();
  const table = document.getElementById('service-table');
  const more = document.getElementById('service-more');
  const filter = document.getElementById('service-filter');
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
    const wanted = filter.value.trim().toLowerCase();
    const found = services.filter((service) => textOf(service).includes(wanted));
    const shown = found.slice(0, MOST_ROWS);
    show(shown);
    forgetOthers(rows, new Set(shown.map(nameOf)));
    table.hidden = found.length === 0;
    more.hidden = found.length <= MOST_ROWS;
    say(more, `and ${found.length - MOST_ROWS} more; filter to see them`);
    if (services.length === 0) {
      sayEmpty('services', 'No Service yet: Weir takes those of type LoadBalancer that name its loadBalancerClass.');
    } else {
      sayEmpty('services', found.length === 0 ? `No Service matches "${filter.value}".` : '');
    }
  };
  filter.addEventListener('input', refresh);
  return {
    show(items) {
      services = items;
      refresh();
    },
    rates({ services: rates }) {
      for (const rate of rates) rows.get(nameOf(rate))?.rates(rate);
    },
  };
}

const nameOf = ({ namespace, name }) => `${namespace}/${name}`;

function textOf(service) {
  const { tenant, state, reason, addresses } = service;
  return [nameOf(service), tenant, state, reason, ...addresses].join(' ').toLowerCase();
}

function serviceRow({ namespace, name, tenant }, onSuspend) {
  const full = `${namespace}/${name}`;
  const cell = (label, ...children) => el('td', { 'data-label': label }, ...children);
  const state = el('div');
  const message = el('div', { class: 'message' });
  const places = el('div', { class: 'places' });
  const endpoints = cell('Endpoints');
  endpoints.className = 'short';
  const out = cell('Out', '–');
  const inward = cell('In', '–');
  out.className = 'number';
  inward.className = 'number';
  const target = { type: 'Service', namespace, service: name };
  const suspend = el(
    'button',
    { type: 'button', 'aria-label': `Suspend Service ${full}`, onclick: () => onSuspend(target, `Service ${full}`) },
    'Suspend…',
  );
  const node = el(
    'tr',
    {},
    el(
      'th',
      { scope: 'row' },
      full,
      el('div', { class: 'quiet' }, tenant === null ? 'tenant in dispute' : `tenant ${tenant}`),
    ),
    cell('State', state, message),
    cell('Reached at', places),
    endpoints,
    out,
    inward,
    cell('', suspend),
  );
  return {
    node,
    update(service) {
      if (state.dataset.state !== service.state) state.replaceChildren(stateMark(service.state));
      state.dataset.state = service.state;
      say(message, messageFor(service));
      say(places, placesFor(service));
      say(endpoints, `${service.endpoints.ready} of ${service.endpoints.total} ready`);
      suspend.hidden = service.state === 'Suspended' || !service.maySuspend;
    },
    rates(rate) {
      say(out, bitRate(rate.outBitsPerSecond));
      say(inward, bitRate(rate.inBitsPerSecond));
    },
  };
}

/** Of a Service that serves only what is not as it should be; of any other why. */
function messageFor({ state, reason, message, conditions, portErrors }) {
  const isAmiss = ({ type, status }) => type === 'Degraded' || (type === 'Accepted' && status === 'False');
  const told =
    state === 'Programmed'
      ? conditions.filter(isAmiss).map((condition) => `${condition.reason}: ${condition.message}`)
      : [`${reason}: ${message}`];
  const untold = portErrors.filter((error) => !told.some((text) => text.includes(error.message)));
  return [...told, ...untold.map((error) => `${error.reason}: ${error.message}`)].join('; ');
}

function placesFor({ addresses, ports }) {
  const numbers = [...new Set(ports.map(({ port, protocol }) => `${port}/${protocol}`))].join(', ');
  return addresses.length === 0 ? '–' : `${addresses.join(', ')} port ${numbers}`;
}
