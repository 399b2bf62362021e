// Tests faults of endpoints and clients at every stage of a connection. Each connection must end with one counted
// outcome, relayed bytes must be counted exactly, and nothing may stay open.
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { connectClient, eventually, type TestClient } from '@weir/testkit';
import { ACTIVE, RECEIVED, SENT } from '../../src/metering/counters.ts';
import type { Outcome } from '../../src/metering/outcome.ts';
import { type EndpointConnection, type ScriptedEndpoint, scriptedEndpoint } from '../fixtures/scripted-endpoint.ts';
import { endpointOf, webService } from '../fixtures/services.ts';
import { TRANSPORTS } from '../fixtures/transports.ts';
import { startWorkerInTest, type WorkerInTest } from '../fixtures/worker-in-test.ts';

const RESET = { kind: 'error', code: 'ECONNRESET' } as const;
const END = { kind: 'end' } as const;

interface FaultScenario {
  readonly worker: WorkerInTest;
  readonly endpoint: ScriptedEndpoint;
  readonly client: TestClient;
  readonly side: EndpointConnection;
}

interface Case {
  readonly name: string;
  play(scenario: FaultScenario): Promise<void>;
  readonly outcome: Outcome;
  /**
   * Whether the proxy does not read from the side that resets. The net transport notices a reset only when it reads, so
   * the idle timeout ends such a connection.
   */
  readonly isUnread?: boolean;
  /** The exact number of relayed bytes: those received from the client, and those sent to the client. */
  readonly counted: readonly [received: number, sent: number];
}

const CASES: readonly Case[] = [
  {
    name: 'endpoint resets in the middle of the request',
    async play({ client, side }) {
      await client.send('half');
      await side.take(4);
      side.reset();
      assert.deepEqual(await client.ended, RESET);
    },
    outcome: 'reset-by-endpoint',
    counted: [4, 0],
  },
  {
    name: 'endpoint resets in the middle of its answer',
    async play({ client, side }) {
      await side.send('half an ');
      await client.take(8);
      side.reset();
      assert.deepEqual(await client.ended, RESET);
    },
    outcome: 'reset-by-endpoint',
    counted: [0, 8],
  },
  {
    name: 'endpoint answers and ends before the request',
    async play({ client, side }) {
      await side.send('421 too busy');
      await side.end();
      assert.deepEqual(await client.ended, END);
      assert.equal((await client.take(12)).toString(), '421 too busy');
      await client.send('never mind');
      await side.take(10);
      await client.end();
      assert.deepEqual(await side.ended, END);
    },
    outcome: 'completed',
    counted: [10, 12],
  },
  {
    name: 'endpoint ends, then resets when the client sends',
    async play({ client, side }) {
      await side.end();
      assert.deepEqual(await client.ended, END);
      await client.send('late');
      await side.take(4);
      side.reset();
    },
    outcome: 'reset-by-endpoint',
    isUnread: true,
    counted: [4, 0],
  },
  {
    name: 'endpoint accepts and never answers',
    async play({ client, worker }) {
      await client.send('hello?');
      await eventually(() => assert.equal(worker.row[RECEIVED], 6));
      worker.tick(605);
      assert.deepEqual(await client.ended, RESET);
    },
    outcome: 'idle-timeout',
    counted: [6, 0],
  },
  {
    name: 'client and endpoint end without sending',
    async play({ client, side }) {
      await client.end();
      assert.deepEqual(await side.ended, END);
      await side.end();
      assert.deepEqual(await client.ended, END);
    },
    outcome: 'completed',
    counted: [0, 0],
  },
  {
    name: 'client resets without sending',
    async play({ client, side }) {
      client.reset();
      assert.deepEqual(await side.ended, RESET);
    },
    outcome: 'reset-by-client',
    counted: [0, 0],
  },
  {
    name: 'client resets in the middle of its request',
    async play({ client, side }) {
      await client.send('half');
      await side.take(4);
      client.reset();
      assert.deepEqual(await side.ended, RESET);
    },
    outcome: 'reset-by-client',
    counted: [4, 0],
  },
  {
    name: 'client ends, then resets in the middle of the answer',
    async play({ client, side }) {
      await client.send('get');
      await client.end();
      assert.deepEqual(await side.ended, END);
      await side.send('answer');
      await client.take(6);
      client.reset();
    },
    outcome: 'reset-by-client',
    isUnread: true,
    counted: [3, 6],
  },
];

for (const { name, transport, noticesResetsUnread } of TRANSPORTS) {
  describe(`${name}: faults of endpoints and clients`, () => {
    for (const { name: fault, play, isUnread = false, counted, ...expected } of CASES) {
      const isLate = isUnread && !noticesResetsUnread;
      const outcome = isLate ? 'idle-timeout' : expected.outcome;
      test(fault, async () => {
        await using endpoint = await scriptedEndpoint();
        using worker = await startWorkerInTest(webService([endpointOf(endpoint)]), { transport });
        await using client = await connectClient(worker);
        await play({ worker, endpoint, client, side: await endpoint.next() });
        if (isLate) worker.tick(605);
        await eventually(() => assert.deepEqual(worker.outcomes(), { [outcome]: 1 }));
        assert.deepEqual([worker.row[RECEIVED], worker.row[SENT], worker.row[ACTIVE]], [...counted, 0]);
        assert.deepEqual(worker.reported, []);
      });
    }

    test('pauses an endpoint that floods a client which does not read, and ends with the reset of the client', async () => {
      await using endpoint = await scriptedEndpoint();
      using worker = await startWorkerInTest(webService([endpointOf(endpoint)]), { transport });
      await using client = await connectClient(worker);
      client.pause();
      const side = await endpoint.next();
      let written = 0;
      const flood = (async (): Promise<void> => {
        const megabyte = 'x'.repeat(1_000_000);
        for (; written < 200; written += 1) await side.send(megabyte);
      })().catch(() => undefined);
      let before = -1;
      await eventually(() => {
        worker.tick(1);
        const now = worker.row[SENT] ?? 0;
        const isStill = now === before && now > 0;
        before = now;
        assert.ok(isStill);
      });
      assert.ok(written < 100, 'only the kernel buffers data, some megabytes');
      client.reset();
      await flood;
      await eventually(() => assert.deepEqual(worker.outcomes(), { 'reset-by-client': 1 }));
      assert.equal(worker.row[ACTIVE], 0);
    });
  });
}
