import { ask, live } from './api.js';
import { say, sayEmpty } from './dom.js';
import { problemsView, proxiesView } from './fleet.js';
import { time } from './format.js';
import { servicesView } from './services.js';
import { suspensionsView } from './suspensions.js';
import { tenantsView } from './tenants.js';

const EVERY_MS = 2000;

const away = document.getElementById('away');
const link = document.getElementById('link');
const linkText = document.getElementById('link-text');
const said = document.getElementById('said');

const suspensions = suspensionsView({ onChange: () => refresh(), onSaid: announce });
const tenants = tenantsView(suspensions.ask);
const services = servicesView(suspensions.ask);
const showProxies = proxiesView();
const showProblems = problemsView();

let lastSeen;
let isOpen = false;

async function refresh() {
  try {
    const [fleet, tenantList, serviceList, proxies, problems, cutoffs] = await Promise.all(
      ['fleet', 'tenants', 'services', 'proxies', 'problems', 'suspensions'].map((name) => ask(`api/v1/${name}`)),
    );
    lastSeen = new Date();
    say(document.getElementById('fleet'), fleet.name);
    tenants.show(tenantList.items);
    services.show(serviceList.items);
    showProxies(proxies.items, fleet.table);
    showProblems(problems.items);
    suspensions.show(cutoffs.items);
    sayAway(
      fleet.reachable
        ? ''
        : 'The store does not answer: proxies go on with their last table, and what you see is the last that is known.',
    );
  } catch (error) {
    const since = lastSeen === undefined ? '' : ` What you see is of ${time(lastSeen)}.`;
    sayAway(
      `${error.away ? 'The console does not answer; it is asked again every few seconds.' : error.message}${since}`,
    );
    if (lastSeen === undefined) {
      for (const name of ['tenants', 'services', 'proxies', 'problems']) sayEmpty(name, 'Nothing is known yet.');
    }
  }
}

function sayAway(text) {
  away.hidden = text === '';
  say(away, text);
}

function announce(text) {
  say(said, text);
  said.classList.add('is-shown');
  clearTimeout(announce.timer);
  announce.timer = setTimeout(() => said.classList.remove('is-shown'), 6000);
}

function showLink() {
  link.dataset.state = isOpen ? 'open' : 'lost';
  say(linkText, isOpen ? 'live' : 'connection lost, trying again');
}

live({
  onState(open) {
    isOpen = open;
    showLink();
  },
  onHistory: tenants.history,
  onRates(frame) {
    tenants.rates(frame);
    services.rates(frame);
  },
});

/** One after the other, and not while nobody looks. */
async function follow() {
  if (!document.hidden) await refresh();
  setTimeout(follow, EVERY_MS);
}
document.addEventListener('visibilitychange', () => document.hidden || refresh());
void follow();
