import { authorizationHeaders, requestJson, signInWith, signOut, takeSignOutReason, token } from './api.js';
import { setText } from './dom.js';

/** Creates the sign-in form and shows the signed-in user in the header. */
export function signInView() {
  const byId = (id) => document.getElementById(id);
  const form = byId('sign-in-form');
  const tokenField = byId('sign-in-token');
  const error = byId('sign-in-error');
  const confirm = byId('sign-in-confirm');
  const signOutReason = takeSignOutReason();
  byId('sign-out').addEventListener('click', () => signOut());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    // A token that was copied from a terminal may contain line breaks.
    const newToken = tokenField.value.replaceAll(/\s/g, '');
    confirm.disabled = true;
    setText(error, '');
    try {
      await requestJson('api/v1/me', { headers: authorizationHeaders(newToken) });
      signInWith(newToken);
    } catch (failure) {
      setText(error, failure.message);
      tokenField.select();
    } finally {
      confirm.disabled = false;
    }
  });
  return {
    /**
     * Shows the form after a response with status 401. If the refused request carried the stored token, first signs the user out. Keeps a
     * token that was stored after the request was sent.
     */
    requireSignIn({ message, authorization }) {
      if (token() !== '') {
        if (authorization === authorizationHeaders().authorization) signOut(message);
        return;
      }
      if (!byId('sign-in').hidden) return;
      byId('sign-in').hidden = false;
      setText(error, signOutReason);
      tokenField.focus();
    },
    show({ auth, user }) {
      byId('sign-in').hidden = true;
      byId('user').hidden = auth === 'none';
      setText(byId('user-name'), user ?? '');
    },
  };
}
