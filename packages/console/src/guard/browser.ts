// A console that asks for tokens answers under any name: Service, Ingress, port-forward. A browser sends a token only where our own page
// put it into a request, never by itself as it does with cookies, and keeps it apart by origin: a page of another site, also under a name
// that was pointed here (DNS rebinding), has none to send. What its pages may do is in the browser's own header, which holds behind
// every Ingress, also one that rewrites Host.

/** Whether a browser says that a page of another site sent this. */
export function isCrossSite(headers: { readonly 'sec-fetch-site'?: string | readonly string[] | undefined }): boolean {
  const site = headers['sec-fetch-site'];
  return site === 'cross-site' || site === 'same-site';
}
