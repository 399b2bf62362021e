/** What `isProxyUrl` takes, for messages. */
export const PROXY_URL_FORMAT = 'http://, https:// or socks5://[USER:PASSWORD@]HOST[:PORT]';

/** Whether it is a proxy that requests can be sent through. */
export function isProxyUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname } = new URL(text);
  return /^(https?|socks(4a?|5h?)?):$/.test(protocol) && hostname !== '';
}
