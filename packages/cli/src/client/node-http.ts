// The module `node:http`. An `import` of this module also loads Node's WebSocket client, because the module exports this client. Loading the
// client would take a quarter of the time of a `weir suspend`, while the tenant is not cut off yet.
export const http: typeof import('node:http') = process.getBuiltinModule('node:http');
