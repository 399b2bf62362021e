import { requestJson } from './api.js';
import { element, keyedList, setEmptyMessage } from './dom.js';
import { time } from './format.js';
import { authorText, targetText } from './suspension-text.js';

/**
 * Creates the list of Suspensions and releases. The list is read again when the Suspensions in force change, and older items only on
 * demand, because the audit trail can have thousands of items.
 */
export function historyView() {
  const table = document.getElementById('history-table');
  const older = document.getElementById('history-older');
  const tenant = document.getElementById('history-tenant');
  const showRows = keyedList(document.getElementById('history-rows'), (item) => item.id, historyRow);
  const showTenants = keyedList(tenant, (name) => name, tenantOption);
  let items = [];
  let next = null;
  let shownState;

  /** Reads items until the list has more of them or is complete, because a page of the audit trail may have no item of the tenant. */
  const read = async (before) => {
    const { value } = tenant;
    const found = before === null ? [] : [...items];
    const known = found.length;
    let position = before;
    do {
      const query = new URLSearchParams({
        ...(value !== '' && { tenant: value }),
        ...(position && { before: position }),
      });
      const page = await requestJson(`api/v1/suspensions/audit?${query}`);
      found.push(...page.items);
      position = page.next;
    } while (position !== null && found.length === known);
    // The user may have chosen another tenant in the meantime.
    if (value === tenant.value) show(found, position);
  };

  const show = (found, position) => {
    items = found;
    next = position;
    showRows(items);
    table.hidden = items.length === 0;
    older.hidden = next === null;
    setEmptyMessage('history', items.length > 0 ? '' : 'No Suspension in the last two years.');
  };

  const readOrExplain = async (before) => {
    older.disabled = true;
    try {
      await read(before);
    } catch (error) {
      shownState = undefined;
      if (before === null) show([], null);
      if (items.length === 0) setEmptyMessage('history', error.message);
    } finally {
      older.disabled = false;
    }
  };

  tenant.addEventListener('change', () => readOrExplain(null));
  older.addEventListener('click', () => readOrExplain(next));

  return {
    /** Shows the names of the tenants, and reads the list if the Suspensions have changed since the last call. */
    async show(tenants, suspensions) {
      const names = new Set(['', ...tenants.map(({ name }) => name).sort(), tenant.value]);
      showTenants([...names]);
      const state = JSON.stringify(
        suspensions.map(({ name, createdAt, until, inForce }) => [name, createdAt, until, inForce]),
      );
      if (state === shownState) return;
      shownState = state;
      await readOrExplain(null);
    },
  };
}

function tenantOption(name) {
  return { node: element('option', { value: name }, name === '' ? 'all' : name), update() {} };
}

/** Items of the audit trail never change, so a row needs no update. */
function historyRow({ at, action, why, releasedBy, suspension }) {
  const { target, until, message } = suspension;
  const isRelease = action === 'Released';
  const cell = (label, text) => element('td', { 'data-label': label }, text);
  const author = isRelease
    ? (releasedBy ?? (why === 'expired' ? 'its end' : 'an unknown user'))
    : madeByText(suspension);
  const node = element(
    'tr',
    { class: isRelease ? 'is-release' : 'is-suspension' },
    element('th', { scope: 'row' }, element('time', { datetime: at }, time(at))),
    cell('Action', isRelease ? `Released (${why})` : 'Suspended'),
    cell('Target', targetText(target)),
    cell('By', author),
    cell('Until', isRelease ? '–' : until === null ? 'resumed' : time(until)),
    element('td', { 'data-label': 'Message' }, element('div', { class: 'message' }, message)),
  );
  return { node, update() {} };
}

function madeByText({ origin, ...author }) {
  return origin.kind === 'file' && author.rule === null ? origin.path : authorText(author);
}
