import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createLoad, type EndpointLoad } from '@weir/model';
import type { Member } from '../../src/relay/member.ts';
import { Departures } from '../../src/worker/departures.ts';
import { Severing } from '../../src/worker/severing.ts';

test('when many endpoints are due, what is open of their Service is gone through once, and only theirs is ended', () => {
  const departures = new Departures(new Severing((thrown) => assert.fail(String(thrown))));
  const loads = Array.from({ length: 100 }, (_, index) => loadAt(`10.0.0.${index}`));
  const staying = loadAt('10.0.1.1');
  const ended: string[] = [];
  const open = [staying, ...loads].map((load) => memberAt(load, ended));
  let passes = 0;
  const members = {
    [Symbol.iterator]() {
      passes += 1;
      return open.values();
    },
  };
  for (const [index, load] of loads.entries())
    departures.add(load, { service: 'u', members, dueAt: index < 99 ? 10 : 11 });
  departures.tick(9);
  assert.deepEqual([passes, ended.length], [0, 0]);
  departures.tick(10);
  assert.deepEqual([passes, ended.length, ended.includes('10.0.1.1')], [1, 99, false]);
  departures.tick(11);
  assert.deepEqual([passes, ended.length, ended.at(-1)], [2, 100, '10.0.0.99']);
});

function loadAt(address: string): EndpointLoad {
  return { ...createLoad({ address, port: 80 }), active: 1 };
}

function memberAt(load: EndpointLoad, ended: string[]): Member {
  return {
    load,
    deadline: 0,
    wheelSlot: 0,
    wheelAt: -1,
    memberAt: -1,
    end: () => void ended.push(load.endpoint.address),
    onExpired: () => undefined,
  };
}
