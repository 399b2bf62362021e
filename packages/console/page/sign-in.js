import { ask, signedBy } from './api.js';
import { say } from './dom.js';
import { signInWith, signOut, takeEnding, token } from './token.js';

/** The form for a token, and who is signed in. */
export function signInView() {
  const part = (name) => document.getElementById(name);
  const form = part('sign-in-form');
  const field = part('sign-in-token');
  const error = part('sign-in-error');
  const confirm = part('sign-in-confirm');
  const ending = takeEnding();
  part('sign-out').addEventListener('click', () => signOut());
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    // Copied from a terminal it may be broken into lines.
    const text = field.value.replaceAll(/\s/g, '');
    confirm.disabled = true;
    say(error, '');
    try {
      await ask('api/v1/me', { headers: signedBy(text) });
      signInWith(text);
    } catch (failure) {
      say(error, failure.message);
      field.select();
    } finally {
      confirm.disabled = false;
    }
  });
  return {
    /** Nobody is signed in, or no longer. */
    wanted(why) {
      if (token() !== '') return signOut(why);
      if (!part('sign-in').hidden) return;
      part('sign-in').hidden = false;
      say(error, ending);
      field.focus();
    },
    show({ auth, user }) {
      part('sign-in').hidden = true;
      part('who').hidden = auth === 'none';
      say(part('who-name'), user ?? '');
    },
  };
}
