import { ask } from './api.js';
import { say, sayEmpty } from './dom.js';
import { problemsView, proxiesView } from './fleet.js';
import { time } from './format.js';
import { live } from './live.js';
import { servicesView } from './services.js';
import { signInView } from './sign-in.js';
import { suspensionsView } from './suspensions.js';
import { tenantsView } from './tenants.js';
import { showSections } from './views.js';

const EVERY_MS = 2000;

const away = document.getElementById('away');
const link = document.getElementById('link');
const linkText = document.getElementById('link-text');
const said = document.getElementById('said');

const signIn = signInView();
const suspensions = suspensionsView({ onChange: () => refresh(), onSaid: announce });
const tenants = tenantsView(suspensions.ask);
const services = servicesView(suspensions.ask);
const showProxies = proxiesView();
const showProblems = problemsView();

let lastSeen;
let isFollowed = false;

async function refresh() {
  try {
    const me = await ask('api/v1/me');
    signIn.show(me);
    showSections(me.namespaces);
    say(document.getElementById('fleet'), me.fleet);
    if (me.namespaces?.length === 0) return sayAway(seesNothing(me));
    await refreshLists(me);
    followLive();
    lastSeen = new Date();
    sayAway(me.reachable ? '' : STORE_AWAY);
  } catch (error) {
    if (error.status === 401) {
      showSections(undefined);
      sayAway('');
      signIn.wanted(error.message);
    } else sayFailed(error);
  }
}

const STORE_AWAY =
  'The store does not answer: proxies go on with their last table, and what you see is the last that is known.';

function seesNothing({ user }) {
  return `${user} may see none of the namespaces that have load balancers. Ask for a Role with get of tenantusages.weir.dev in yours.`;
}

async function refreshLists({ namespaces, may }) {
  const list = async (name) => (await ask(`api/v1/${name}`)).items;
  const isOperator = namespaces === null;
  const [tenantList, serviceList, problems, cutoffs, fleet, proxies] = await Promise.all([
    ...['tenants', 'services', 'problems', 'suspensions'].map(list),
    ...(isOperator ? [ask('api/v1/fleet'), list('proxies')] : []),
  ]);
  tenants.show(tenantList.map((tenant) => ({ ...tenant, maySuspend: may.suspend })));
  services.show(serviceList.map((service) => ({ ...service, maySuspend: may.suspend })));
  showProblems(problems);
  suspensions.show(cutoffs.map((cutoff) => ({ ...cutoff, mayResume: may.resume })));
  if (isOperator) showProxies(proxies, fleet.table);
}

function sayFailed(error) {
  const since = lastSeen === undefined ? '' : ` What you see is of ${time(lastSeen)}.`;
  sayAway(
    `${error.away ? 'The console does not answer; it is asked again every few seconds.' : error.message}${since}`,
  );
  if (lastSeen === undefined) {
    for (const name of ['tenants', 'services', 'proxies', 'problems']) sayEmpty(name, 'Nothing is known yet.');
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

/** Not before it is known that somebody is signed in. */
function followLive() {
  if (isFollowed) return;
  isFollowed = true;
  void live({
    onState(isOpen) {
      link.hidden = false;
      link.dataset.state = isOpen ? 'open' : 'lost';
      say(linkText, isOpen ? 'live' : 'connection lost, trying again');
    },
    onHistory: tenants.history,
    onRates(frame) {
      tenants.rates(frame);
      services.rates(frame);
    },
  });
}

/** One after the other, and not while nobody looks. */
async function follow() {
  if (!document.hidden) await refresh();
  setTimeout(follow, EVERY_MS);
}
document.addEventListener('visibilitychange', () => document.hidden || refresh());
void follow();
