import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownFact } from '../../src/doctor/facts.ts';
import { FAILED, findingFor, heartbeat, heartbeats, NOT_ASKED, node } from '../fixtures/doctor-facts.ts';

test('ProxiesAlive fails for a usable node without a proxy', () => {
  const silent = findingFor('ProxiesAlive', { heartbeats: heartbeats(heartbeat('edge-1')) });
  assert.equal(silent.severity, 'error');
  assert.match(silent.message, /^no heartbeat from a proxy on edge-2: check that the proxy's pod runs/);
  const nodes = knownFact([node('edge-1', '10.0.0.1'), node('edge-2', '10.0.0.2', { isCordoned: true })]);
  assert.equal(findingFor('ProxiesAlive', { nodes, heartbeats: heartbeats(heartbeat('edge-1')) }).severity, 'ok');
});

test('ProxiesAlive warns about proxies on unlabelled nodes, draining proxies and proxies without a table', () => {
  const both = [heartbeat('edge-1'), heartbeat('edge-2')];
  const findingWith = (...items: readonly ReturnType<typeof heartbeat>[]) =>
    findingFor('ProxiesAlive', { heartbeats: heartbeats(...items) });
  assert.match(findingWith(...both, heartbeat('worker')).message, /^a proxy runs on worker but serves nothing there/);
  assert.match(
    findingWith(heartbeat('edge-1'), heartbeat('edge-2', { draining: true })).message,
    /^the proxy on edge-2 drains/,
  );
  assert.match(
    findingWith(heartbeat('edge-1'), heartbeat('edge-2', { applied: null })).message,
    /^the proxy on edge-2 has no routing table yet/,
  );
  const unreadable = findingWith(
    heartbeat('edge-1'),
    heartbeat('edge-2', { applied: null, unreadable: 'edge-2 is of format 3' }),
  );
  assert.deepEqual([unreadable.severity, unreadable.message], ['warning', 'edge-2 is of format 3']);
  const upgrade = findingWith(...both, heartbeat('edge-2', { life: 2, draining: true }));
  assert.equal(upgrade.severity, 'ok', upgrade.message);
});

test('ProxiesAlive lists the nodes with heartbeats if the Node objects are unknown', () => {
  const seen = findingFor('ProxiesAlive', { nodes: FAILED });
  assert.deepEqual([seen.severity, seen.message], ['ok', 'proxies on 2 nodes send heartbeats: edge-1, edge-2']);
  assert.equal(findingFor('ProxiesAlive', { nodes: FAILED, heartbeats: heartbeats() }).severity, 'warning');
});

test('ProxyVersions warns about several versions', () => {
  const fleet = heartbeats(heartbeat('edge-1'), heartbeat('edge-2', { version: '1.3.0' }));
  const { severity, message } = findingFor('ProxyVersions', { heartbeats: fleet });
  assert.equal(severity, 'warning');
  assert.match(message, /1\.2\.3 \(edge-1\), 1\.3\.0 \(edge-2\)/);
  assert.match(
    findingFor('ProxyVersions', { version: '2.0.0' }).message,
    /^all proxies have version 1\.2\.3; this command has version 2\.0\.0$/,
  );
});

test('ProxyVersions names the transports of the proxies that report it', () => {
  const [first, second] = [heartbeat('edge-1', { transport: 'syscalls' }), heartbeat('edge-2', { transport: 'node' })];
  const messageFor = (...items: readonly ReturnType<typeof heartbeat>[]) =>
    findingFor('ProxyVersions', { version: '1.2.3', heartbeats: heartbeats(...items) }).message;
  assert.equal(messageFor(first, heartbeat('edge-2')), 'all proxies have version 1.2.3; transport syscalls');
  assert.equal(
    messageFor(first, second),
    'all proxies have version 1.2.3; transports syscalls (edge-1), node (edge-2)',
  );
});

test('ProxyPorts fails with the error of the proxy for a port that could not be bound', () => {
  const id = 'listener/edge-1/10.0.0.1/TCP/80';
  const taken = { id, service: 'u', bound: false, listening: false, error: '10.0.0.1:80 is taken by nginx; end it' };
  const fleet = heartbeats(heartbeat('edge-1', { listeners: [{ ...taken, error: null, bound: true }, taken] }));
  const { severity, message } = findingFor('ProxyPorts', { heartbeats: fleet });
  assert.equal(severity, 'error');
  assert.equal(message, '1 port could not be bound: edge-1: 10.0.0.1:80 is taken by nginx; end it');
});

test('KernelSettings prints a warning once with all nodes that report it', () => {
  const hostAdvice = ['set net.ipv4.tcp_migrate_req=1'];
  const fleet = heartbeats(heartbeat('edge-1', { hostAdvice }), heartbeat('edge-2', { hostAdvice }));
  const { severity, message } = findingFor('KernelSettings', { heartbeats: fleet });
  assert.equal(severity, 'error');
  assert.equal(message, 'edge-1, edge-2: set net.ipv4.tcp_migrate_req=1');
});

test('KernelSettings fails only if a setting that the chart applies is missing', () => {
  const severityWith = (text: string) =>
    findingFor('KernelSettings', {
      heartbeats: heartbeats(heartbeat('edge-1', { hostAdvice: [text] }), heartbeat('edge-2', { hostAdvice: [] })),
    }).severity;
  assert.equal(severityWith('set net.core.somaxconn=4096'), 'error');
  assert.equal(severityWith('at most 1024 files may be open; raise LimitNOFILE'), 'warning');
});

test("KernelSettings uses this machine's settings for its own node if the proxy reports none", () => {
  const { hostAdvice: _first, ...one } = heartbeat('edge-1');
  const { hostAdvice: _second, ...two } = heartbeat('edge-2');
  const fleet = heartbeats(one, two);
  const away = findingFor('KernelSettings', { heartbeats: fleet });
  assert.match(
    away.message,
    /^not checked: the proxies on edge-1, edge-2 do not report kernel settings; run weir doctor on one/,
  );
  const host = { addresses: ['10.0.0.2'], kernelWarnings: ['set x=1'] };
  const here = findingFor('KernelSettings', { heartbeats: fleet, host });
  assert.match(here.message, /^edge-2: in this shell, set x=1; not checked: the proxies on edge-1 do/);
});

test('ProxiesAlive fails if neither an API server nor a proxy could be asked', () => {
  const { severity, message } = findingFor('ProxiesAlive', {
    server: NOT_ASKED,
    nodes: NOT_ASKED,
    heartbeats: heartbeats(),
  });
  assert.equal(severity, 'error');
  assert.match(message, /^no proxy of fleet "weir" sends heartbeats, and no API server .* nothing about this fleet/);
});
