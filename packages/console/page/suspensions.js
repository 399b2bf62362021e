import { resume, suspend } from './api.js';
import { element, keyedList, setText } from './dom.js';
import { detailsText, targetText } from './suspension-text.js';

/**
 * Creates the banner that lists Suspensions, and the dialog that creates a Suspension. Calls `onChange()` after a change, and
 * `onNotice(text)` to show a notice.
 */
export function suspensionsView({ onChange, onNotice }) {
  const banner = document.getElementById('suspensions');
  const show = keyedList(
    document.getElementById('suspension-list'),
    (item) => `${item.name}|${item.origin.kind}`,
    (item) => suspensionItem(item, { onChange, onNotice }),
  );
  return {
    show(items) {
      const inForce = items.filter((item) => item.inForce);
      banner.hidden = inForce.length === 0;
      show(inForce);
    },
    openDialog: suspendDialog({ onChange, onNotice }),
  };
}

function suspensionItem(item, { onChange, onNotice }) {
  const details = element('span', { class: 'message' });
  const button = element('button', { type: 'button', 'aria-label': `Resume ${targetText(item.target)}` }, 'Resume');
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      await resume(item.name);
      onNotice(`${targetText(item.target)} resumed`);
      await onChange();
    } catch (error) {
      onNotice(error.message);
    } finally {
      button.disabled = false;
    }
  });
  return {
    node: element('li', {}, element('b', {}, targetText(item.target)), details, button),
    update(suspension) {
      const { origin, mayResume } = suspension;
      button.hidden = origin.kind === 'file' || origin.kind === 'local' || !mayResume;
      setText(details, detailsText(suspension));
    },
  };
}

function suspendDialog({ onChange, onNotice }) {
  const byId = (id) => document.getElementById(id);
  const dialog = byId('suspend');
  const message = byId('suspend-message');
  const error = byId('suspend-error');
  const confirm = byId('suspend-confirm');
  let target;
  let targetName = '';
  byId('suspend-cancel').addEventListener('click', () => dialog.close());
  byId('suspend-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    confirm.disabled = true;
    try {
      await suspend(target, { message: message.value, seconds: byId('suspend-for').value });
      dialog.close();
      onNotice(`${targetName} suspended`);
      await onChange();
    } catch (failure) {
      setText(error, failure.message);
    } finally {
      confirm.disabled = false;
    }
  });
  return (newTarget, newTargetName) => {
    target = newTarget;
    targetName = newTargetName;
    message.value = '';
    setText(error, '');
    setText(byId('suspend-title'), `Suspend ${targetName}?`);
    setText(confirm, `Suspend ${targetName}`);
    dialog.showModal();
    message.focus();
  };
}
