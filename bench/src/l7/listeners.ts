/**
 * The listeners of each proxy. All but `grpc` relay to the same backend over HTTP/1.1. `http`: one route for all requests. `routes`: the
 * routes of `routes.ts`. `https`: TLS is terminated, then as `http`. `http2`: HTTP/2 without TLS, with prior knowledge (RFC 9113 §3.3).
 * `grpc`: as `http2`, and relays to a backend of HTTP/2 with prior knowledge.
 */
export const L7_LISTENERS = ['http', 'routes', 'https', 'http2', 'grpc'] as const;
export type L7Listener = (typeof L7_LISTENERS)[number];
export type L7Ports = Readonly<Record<L7Listener, number>>;

/** Subjects that the option --subjects of `l7` accepts. */
export const L7_SUBJECTS = ['weir', 'haproxy', 'nginx', 'envoy', 'http-proxy'] as const;
export type L7SubjectName = (typeof L7_SUBJECTS)[number];
