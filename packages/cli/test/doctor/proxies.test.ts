import assert from 'node:assert/strict';
import { test } from 'node:test';
import { knownFact } from '../../src/doctor/facts.ts';
import { FAILED, findingFor, heartbeat, heartbeats, node } from '../fixtures/doctor-facts.ts';

test('ProxiesAlive: a node without a proxy is an error; one that is left out needs none', () => {
  const silent = findingFor('ProxiesAlive', { heartbeats: heartbeats(heartbeat('edge-1')) });
  assert.equal(silent.severity, 'error');
  assert.match(silent.message, /^no proxy is heard of edge-2: look at the pod there/);
  const nodes = knownFact([node('edge-1', '10.0.0.1'), node('edge-2', '10.0.0.2', { isCordoned: true })]);
  assert.equal(findingFor('ProxiesAlive', { nodes, heartbeats: heartbeats(heartbeat('edge-1')) }).severity, 'ok');
});

test('ProxiesAlive: strays, and those that only drain or have no table, are warnings', () => {
  const both = [heartbeat('edge-1'), heartbeat('edge-2')];
  const of = (...more: readonly ReturnType<typeof heartbeat>[]) =>
    findingFor('ProxiesAlive', { heartbeats: heartbeats(...more) });
  assert.match(of(...both, heartbeat('worker')).message, /^a proxy is heard of worker, which carries no label/);
  assert.match(of(heartbeat('edge-1'), heartbeat('edge-2', { draining: true })).message, /^edge-2 only drains/);
  assert.match(
    of(heartbeat('edge-1'), heartbeat('edge-2', { applied: null })).message,
    /^edge-2 has no routing table yet/,
  );
  const strange = of(heartbeat('edge-1'), heartbeat('edge-2', { applied: null, unreadable: 'edge-2 is of format 3' }));
  assert.deepEqual([strange.severity, strange.message], ['warning', 'edge-2 is of format 3']);
  const upgrade = of(...both, heartbeat('edge-2', { life: 2, draining: true }));
  assert.equal(upgrade.severity, 'ok', upgrade.message);
});

test('ProxiesAlive: without the nodes it says who is heard', () => {
  const seen = findingFor('ProxiesAlive', { nodes: FAILED });
  assert.deepEqual([seen.severity, seen.message], ['ok', '2 nodes with a proxy that is heard: edge-1, edge-2']);
  assert.equal(findingFor('ProxiesAlive', { nodes: FAILED, heartbeats: heartbeats() }).severity, 'warning');
});

test('ProxyVersions: several at once are an upgrade that has not ended', () => {
  const fleet = heartbeats(heartbeat('edge-1'), heartbeat('edge-2', { version: '1.3.0' }));
  const { severity, message } = findingFor('ProxyVersions', { heartbeats: fleet });
  assert.equal(severity, 'warning');
  assert.match(message, /1\.2\.3 \(edge-1\), 1\.3\.0 \(edge-2\)/);
  assert.match(findingFor('ProxyVersions', { version: '2.0.0' }).message, /^all are 1\.2\.3; this command is 2\.0\.0$/);
});

test('ProxyPorts: what could not be bound is an error in the words of the proxy', () => {
  const id = 'listener/edge-1/10.0.0.1/TCP/80';
  const taken = { id, service: 'u', bound: false, listening: false, error: '10.0.0.1:80 is taken by nginx; end it' };
  const fleet = heartbeats(heartbeat('edge-1', { listeners: [{ ...taken, error: null, bound: true }, taken] }));
  const { severity, message } = findingFor('ProxyPorts', { heartbeats: fleet });
  assert.equal(severity, 'error');
  assert.equal(message, '1 port could not be bound: edge-1: 10.0.0.1:80 is taken by nginx; end it');
});

test('KernelSettings: what several proxies lack is told once', () => {
  const hostAdvice = ['set net.ipv4.tcp_migrate_req=1'];
  const fleet = heartbeats(heartbeat('edge-1', { hostAdvice }), heartbeat('edge-2', { hostAdvice }));
  const { severity, message } = findingFor('KernelSettings', { heartbeats: fleet });
  assert.equal(severity, 'warning');
  assert.equal(message, 'edge-1, edge-2: set net.ipv4.tcp_migrate_req=1');
});

test('KernelSettings: of proxies that do not tell, the machine that doctor runs on is looked at, if it is one of them', () => {
  const { hostAdvice: _first, ...one } = heartbeat('edge-1');
  const { hostAdvice: _second, ...two } = heartbeat('edge-2');
  const fleet = heartbeats(one, two);
  const away = findingFor('KernelSettings', { heartbeats: fleet });
  assert.match(away.message, /^not checked: edge-1, edge-2, whose proxies do not tell; run weir doctor on one/);
  const host = { addresses: ['10.0.0.2'], kernelWarnings: ['set x=1'] };
  const here = findingFor('KernelSettings', { heartbeats: fleet, host });
  assert.match(here.message, /^edge-2: as this shell sees it, set x=1; not checked: edge-1, whose/);
});
