import { resume, suspend } from './api.js';
import { el, keyedList, say } from './dom.js';
import { time } from './format.js';

/** The banner of what is cut off, and the dialogue that cuts off. `onChange()` is called after each change. */
export function suspensionsView({ onChange, onSaid }) {
  const banner = document.getElementById('suspensions');
  const show = keyedList(
    document.getElementById('suspension-list'),
    (item) => `${item.name}|${item.origin.kind}`,
    (item) => suspensionItem(item, { onChange, onSaid }),
  );
  return {
    show(items) {
      const inForce = items.filter((item) => item.inForce);
      banner.hidden = inForce.length === 0;
      show(inForce);
    },
    ask: dialogue({ onChange, onSaid }),
  };
}

function suspensionItem(item, { onChange, onSaid }) {
  const details = el('span', { class: 'message' });
  const button = el('button', { type: 'button', 'aria-label': `Resume ${targetText(item.target)}` }, 'Resume');
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      await resume(item.name);
      onSaid(`${targetText(item.target)} resumed`);
      await onChange();
    } catch (error) {
      onSaid(error.message);
    } finally {
      button.disabled = false;
    }
  });
  return {
    node: el('li', {}, el('b', {}, targetText(item.target)), details, button),
    update({ message, until, origin, reason, mayResume }) {
      button.hidden = origin.kind === 'file' || !mayResume;
      const end = until === null ? 'until resumed' : `until ${time(until)}`;
      const by = reason === 'SuspendedByRule' ? ', by a rule' : '';
      const from = origin.kind === 'file' ? `; it comes from ${origin.path}: delete it there` : '';
      say(details, `${message} (${end}${by}${from})`);
    },
  };
}

function targetText(target) {
  if (target.type === 'Tenant') return `tenant ${target.tenant}`;
  if (target.type === 'Namespace') return `namespace ${target.namespace}`;
  return `Service ${target.namespace}/${target.service}`;
}

function dialogue({ onChange, onSaid }) {
  const part = (name) => document.getElementById(name);
  const dialog = part('suspend');
  const message = part('suspend-message');
  const error = part('suspend-error');
  const confirm = part('suspend-confirm');
  let target;
  let name = '';
  part('suspend-cancel').addEventListener('click', () => dialog.close());
  part('suspend-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    try {
      await suspend(target, { message: message.value, seconds: part('suspend-for').value });
      dialog.close();
      onSaid(`${name} suspended`);
      await onChange();
    } catch (failure) {
      say(error, failure.message);
    } finally {
      confirm.disabled = false;
    }
  });
  return (wanted, text) => {
    target = wanted;
    name = text;
    message.value = '';
    say(error, '');
    say(part('suspend-title'), `Suspend ${text}?`);
    say(confirm, `Suspend ${text}`);
    dialog.showModal();
    message.focus();
  };
}
