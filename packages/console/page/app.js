// Entry point of the page: reads the lists every two seconds and follows the live rates.
import { requestJson } from './api.js';
import { setEmptyMessage, setText } from './dom.js';
import { problemsView, proxiesView } from './fleet.js';
import { time } from './format.js';
import { historyView } from './history.js';
import { followLiveRates } from './live.js';
import { showSections } from './sections.js';
import { nameOf, servicesView } from './services.js';
import { signInView } from './sign-in.js';
import { suspensionsView } from './suspensions.js';
import { tenantsView } from './tenants.js';

const REFRESH_INTERVAL_MS = 2000;
const NOTICE_MS = 6000;
const STORE_AWAY =
  'The store does not answer. The proxies continue with their last table, and this page shows the last known state.';

const alert = document.getElementById('alert');
const connection = document.getElementById('connection');
const connectionText = document.getElementById('connection-text');
const notice = document.getElementById('notice');

const signIn = signInView();
const suspensions = suspensionsView({ onChange: () => refresh(), onNotice: showNotice });
const tenants = tenantsView(suspensions.openDialog);
const services = servicesView(suspensions.openDialog);
const history = historyView();
const showProxies = proxiesView();
const showProblems = problemsView();

let lastRefreshedAt;
let isLive = false;

async function refresh() {
  try {
    const me = await requestJson('api/v1/me');
    signIn.show(me);
    showSections(me.namespaces);
    setText(document.getElementById('fleet'), me.fleet);
    if (me.namespaces?.length === 0) return setAlert(noNamespaceText(me));
    await refreshLists(me);
    startLive();
    lastRefreshedAt = new Date();
    setAlert(me.reachable ? '' : STORE_AWAY);
  } catch (error) {
    if (error.status === 401) {
      showSections(undefined);
      setAlert('');
      signIn.requireSignIn(error);
    } else showFailure(error);
  }
}

function noNamespaceText({ user }) {
  return `${user} may see none of the namespaces that have load balancers. Ask the operator for a Role that allows get tenantusages.weir.dev in your namespace.`;
}

async function refreshLists({ namespaces, may }) {
  const list = async (name) => (await requestJson(`api/v1/${name}`)).items;
  const isOperator = namespaces === null;
  const [tenantList, serviceList, problems, suspensionList, usage, fleet, proxies] = await Promise.all([
    ...['tenants', 'services', 'problems', 'suspensions', 'usage'].map(list),
    ...(isOperator ? [requestJson('api/v1/fleet'), list('proxies')] : []),
  ]);
  const refused = refusedByName(usage);
  tenants.show(
    tenantList.map((tenant) => ({ ...tenant, refused: refused.tenants.get(tenant.name), maySuspend: may.suspend })),
  );
  services.show(
    serviceList.map((service) => ({
      ...service,
      refused: refused.services.get(nameOf(service)),
      maySuspend: may.suspend,
    })),
  );
  showProblems(problems);
  suspensions.show(suspensionList.map((suspension) => ({ ...suspension, mayResume: may.resume })));
  if (isOperator) showProxies(proxies, fleet.table);
  await history.show(tenantList, suspensionList);
}

/** Returns the clients that were refused this month by reason, by the name of the tenant and of the Service. */
function refusedByName(usage) {
  return {
    tenants: new Map(usage.map(({ tenant, refused }) => [tenant, refused])),
    services: new Map(usage.flatMap(({ services }) => services.map((service) => [nameOf(service), service.refused]))),
  };
}

function showFailure({ isUnreachable, message }) {
  const reason = isUnreachable ? 'The console does not answer. The page retries every few seconds.' : message;
  const age = lastRefreshedAt === undefined ? '' : ` This page shows the state of ${time(lastRefreshedAt)}.`;
  setAlert(`${reason}${age}`);
  if (lastRefreshedAt === undefined) {
    for (const name of ['tenants', 'services', 'proxies', 'problems', 'history']) setEmptyMessage(name, 'No data yet.');
  }
}

function setAlert(text) {
  alert.hidden = text === '';
  setText(alert, text);
}

function showNotice(text) {
  setText(notice, text);
  notice.classList.add('is-shown');
  clearTimeout(showNotice.timer);
  showNotice.timer = setTimeout(() => notice.classList.remove('is-shown'), NOTICE_MS);
}

/**
 * Follows the live rates from the first call on; later calls do nothing. `refresh` calls this function after it succeeded, because the user
 * is then signed in.
 */
function startLive() {
  if (isLive) return;
  isLive = true;
  void followLiveRates({
    onState(isOpen) {
      connection.hidden = false;
      connection.dataset.state = isOpen ? 'open' : 'lost';
      setText(connectionText, isOpen ? 'live' : 'connection lost, retrying');
    },
    onHistory: tenants.showHistory,
    onRates(rates) {
      tenants.showRates(rates);
      services.showRates(rates);
    },
  });
}

/**
 * Refreshes the page every two seconds, except while the tab is hidden. Starts the timer after each refresh, so that refreshes do not
 * overlap.
 */
async function refreshPeriodically() {
  if (!document.hidden) await refresh();
  setTimeout(refreshPeriodically, REFRESH_INTERVAL_MS);
}
document.addEventListener('visibilitychange', () => document.hidden || refresh());
void refreshPeriodically();
