/** The fields that a browser sends. With the request line and Host, a request has about 330 bytes. */
export const BROWSER_FIELDS: readonly string[] = [
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
  'Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'Accept-Language: en-US,en;q=0.5',
  'Accept-Encoding: gzip, deflate, br',
  'Cookie: session=6b1f0c2e9d8a47f5b3c1e0d9f8a7b6c5',
];

export const CLOSE_FIELD = 'Connection: close';

export type RequestText = {
  readonly host: string;
  readonly path: string;
  readonly fields: readonly string[];
  /** The size of the body, which makes the request a POST. */
  readonly uploadBytes?: number;
};

/** Returns the bytes of an HTTP/1.1 request. */
export function requestText({ host, path, fields, uploadBytes }: RequestText): string {
  const method = uploadBytes === undefined ? 'GET' : 'POST';
  const framing = uploadBytes === undefined ? [] : [`Content-Length: ${uploadBytes}`];
  const lines = [`${method} ${path} HTTP/1.1`, `Host: ${host}`, ...fields, ...framing];
  return `${lines.join('\r\n')}\r\n\r\n${'b'.repeat(uploadBytes ?? 0)}`;
}
