/**
 * `node:http` without an `import`. An `import` evaluates all exports of `node:http`, and the export `WebSocket` loads an HTTP client, which
 * delays the cut-off by `weir suspend`.
 */
export const http: typeof import('node:http') = process.getBuiltinModule('node:http');
