// The token of whoever signed in: of this tab, gone with it, and never in a cookie, which a browser would send by itself.

const TOKEN = 'weir.token';
const ENDED = 'weir.ended';

export const token = () => sessionStorage.getItem(TOKEN) ?? '';

/** What is shown belongs to whoever was signed in before: all of it goes. */
export function signInWith(text) {
  sessionStorage.setItem(TOKEN, text);
  location.reload();
}

export function signOut(why = '') {
  sessionStorage.removeItem(TOKEN);
  sessionStorage.setItem(ENDED, why);
  location.reload();
}

/** Why the last session ended, once. */
export function takeEnding() {
  const why = sessionStorage.getItem(ENDED) ?? '';
  sessionStorage.removeItem(ENDED);
  return why;
}
