/** What an HTTP/1.1 session does: which bytes the client sends next, and what the proxy waits for. */
export type Phase =
  /** The next bytes are a head. No request is open. */
  | 'head'
  /** The next bytes are the body of the open request. */
  | 'body'
  /** The request is complete, its response is not. Further bytes belong to the next request. */
  | 'response'
  /** The bytes of both sides belong to another protocol. */
  | 'other'
  /** The last response was sent. Bytes of the client are discarded until its FIN: a close with unread bytes sends RST. */
  | 'linger';
