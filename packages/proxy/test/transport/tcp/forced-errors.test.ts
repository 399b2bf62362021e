// Forces each system call of the data path to fail with the errors that its man page names. The other connections must
// go on, and the affected connection must go on or end with a clear outcome.
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { type ByteCountingServer, connectClient, echoServer, eventually, type TestClient } from '@weir/testkit';
import { requireProgram } from '@weir/tools';
import type { Outcome } from '../../../src/metering/outcome.ts';
import { connectAndAwaitEnd } from '../../fixtures/connection-ending.ts';
import { forceErrors } from '../../fixtures/forced-errors.ts';
import { endpointOf } from '../../fixtures/services.ts';
import { type RelayProcess, type RelayReport, startRelayProcess } from './relay-process.ts';

/** More system calls than one case needs. A loop that spins makes more before the case ends. */
const MAX_CALLS = 300;
/** Ends a test that waits for the end of a connection that nobody ends. */
const LIMITED = { timeout: 20_000 };
const MESSAGE_BYTES = 100;
const ROUND_TRIPS = 20;
/** More turns of the event loop than the round trips need on a busy machine, and fewer than a loop that spins makes. */
const MAX_TURNS_PER_ROUND_TRIP = 25;

const INTERRUPTIBLE_CALLS = 'recvfrom,sendto,sendmsg,epoll_wait';
const CONNECTIONS_AT_ONCE = 8;
const PATTERN_BYTES = 2_000_000;
/** Not a multiple of any buffer size. */
const PATTERN_STEP = 234_567;

interface Case {
  readonly title: string;
  readonly call: string;
  readonly errors: readonly string[];
  /** Which of the calls fails, counted from the start of `act`, as in strace(1). Defaults to the first. */
  readonly when?: string;
  /**
   * Uses a connection while the error is forced: `open`, or a new one to `relay`. Returns how many bytes a new connection
   * has received.
   */
  act(open: TestClient, relay: RelayProcess): Promise<number>;
  /** The outcome of the connection if the error ends it. */
  readonly outcome?: Outcome;
  /** Whether the error ends `open`. */
  readonly endsOpen?: boolean;
}

const BROKEN = ['ENOBUFS', 'ENOMEM', 'EPIPE', 'ECONNRESET', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETDOWN'];
const UNREADABLE = ['ENOMEM', 'ECONNRESET', 'ETIMEDOUT', 'ENOBUFS', 'EIO'];

const CASES: readonly Case[] = [
  {
    title: 'accepts a connection later',
    call: 'accept4',
    errors: ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EPERM', 'EINTR', 'ECONNABORTED', 'EPROTO'].concat([
      'ENETDOWN',
      'ENOPROTOOPT',
      'EHOSTDOWN',
      'ENONET',
      'EHOSTUNREACH',
      'EOPNOTSUPP',
      'ENETUNREACH',
    ]),
    act: (_open, relay) => connectAndTalk(relay),
  },
  {
    title: 'refuses a client if no socket for the endpoint can be opened',
    call: 'socket',
    errors: ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'],
    act: (_open, relay) => expectRefusal(relay),
    outcome: 'connect-failed',
  },
  {
    title: 'refuses a client if the connect fails',
    call: 'connect',
    errors: ['EADDRNOTAVAIL', 'ENETUNREACH', 'ECONNREFUSED', 'EAGAIN', 'EACCES', 'EPERM', 'ETIMEDOUT', 'EADDRINUSE'],
    act: (_open, relay) => expectRefusal(relay),
    outcome: 'connect-failed',
  },
  { title: 'connects', call: 'connect', errors: ['EINTR'], act: (_open, relay) => connectAndTalk(relay) },
  { title: 'sends to the endpoint', call: 'sendto', errors: ['EINTR'], act: talkAgain },
  { title: 'sends to the client', call: 'sendto', errors: ['EINTR'], when: '2', act: talkAgain },
  {
    title: 'resets both sides if nothing can be sent to the endpoint',
    call: 'sendto',
    errors: BROKEN,
    act: expectReset,
    endsOpen: true,
    outcome: 'reset-by-endpoint',
  },
  {
    title: 'resets both sides if nothing can be sent to the client',
    call: 'sendto',
    errors: BROKEN,
    when: '2',
    act: expectReset,
    endsOpen: true,
    outcome: 'reset-by-client',
  },
  { title: 'reads from the client', call: 'recvfrom', errors: ['EINTR'], act: talkAgain },
  { title: 'reads from the endpoint', call: 'recvfrom', errors: ['EINTR'], when: '2', act: talkAgain },
  {
    title: 'resets both sides if nothing can be read from the client',
    call: 'recvfrom',
    errors: UNREADABLE,
    act: expectReset,
    endsOpen: true,
    outcome: 'reset-by-client',
  },
  {
    title: 'resets both sides if nothing can be read from the endpoint',
    call: 'recvfrom',
    errors: UNREADABLE,
    when: '2',
    act: expectReset,
    endsOpen: true,
    outcome: 'reset-by-endpoint',
  },
  {
    title: 'refuses a client whose socket cannot be registered',
    call: 'epoll_ctl',
    errors: ['ENOMEM', 'ENOSPC'],
    act: (_open, relay) => expectRefusal(relay),
  },
  {
    title: 'refuses a client if the socket to the endpoint cannot be registered',
    call: 'epoll_ctl',
    errors: ['ENOMEM', 'ENOSPC'],
    when: '2',
    act: (_open, relay) => expectRefusal(relay),
    outcome: 'connect-failed',
  },
  { title: 'waits again', call: 'epoll_wait', errors: ['EINTR'], when: '1+2', act: talkAgain },
  {
    title: 'resets both sides if FIN cannot be sent',
    call: 'shutdown',
    errors: ['ENOTCONN', 'ENOBUFS'],
    act: async (open) => {
      await open.end();
      assert.deepEqual(await open.ended, { kind: 'error', code: 'ECONNRESET' });
      return 0;
    },
    endsOpen: true,
    outcome: 'reset-by-endpoint',
  },
  // The second write to the endpoint sets TCP_NODELAY.
  { title: 'sends without the option', call: 'setsockopt', errors: ['ENOMEM', 'ENOBUFS'], act: talkAgain },
  {
    title: 'closes a connection that cannot be reset',
    call: 'setsockopt',
    errors: ['ENOMEM', 'ENOBUFS'],
    when: '1+1',
    act: async (open) => {
      open.reset();
      return 0;
    },
    endsOpen: true,
    outcome: 'reset-by-client',
  },
  {
    title: 'counts the bytes later',
    call: 'ioctl',
    errors: ['EINVAL'],
    act: async (open, relay) => {
      await talk(open);
      await relay.report(1);
      return talkAgain(open);
    },
  },
];

describe('system calls that fail', requireProgram('strace'), () => {
  let backend: ByteCountingServer;
  let relay: RelayProcess;
  /** A connection that stays open in all cases. */
  let bystander: TestClient;

  before(async () => {
    backend = await echoServer();
    relay = await startRelayProcess([endpointOf(backend)]);
    bystander = await connectClient(relay);
    await talk(bystander);
  });

  after(async () => {
    await bystander?.close();
    await relay?.[Symbol.asyncDispose]();
    await backend?.close();
  });

  for (const { title, call, errors, when = '1', act, outcome, endsOpen } of CASES) {
    for (const error of errors) {
      test(`${call} ${error}${when === '1' ? '' : ` (${when})`}: ${title}`, LIMITED, async () => {
        const earlier = await whenAllIsAcknowledged(relay, { active: 1 });
        const receivedEarlier = bystander.received;
        const descriptors = relay.descriptors();
        const sockets = relay.sockets();
        await using open = await connectClient(relay);
        await talk(open);
        await whenAllIsAcknowledged(relay, { active: 2 });
        let received = await whileForcing(
          { calls: call, error, when, paths: isTransfer(call) ? socketsSince(relay, sockets) : [] },
          () => act(open, relay),
        );
        received += await connectAndTalk(relay);
        if (!endsOpen) await end(open);
        const later = await whenAllIsAcknowledged(relay, { active: 1 });
        received += open.received + bystander.received - receivedEarlier;
        assert.equal(later.sent - earlier.sent, received, 'the ledger equals what the clients have received');
        assert.deepEqual(
          failuresSince(earlier.outcomes, later.outcomes),
          outcome === undefined ? {} : { [outcome]: 1 },
        );
        for (const reported of later.reported) assert.match(reported, /^E[A-Z]+$/);
        await expectNoSpin();
        await expectNoLeak(descriptors);
      });
    }
  }

  test('signals that interrupt half of all system calls change no byte', LIMITED, async () => {
    const earlier = await whenAllIsAcknowledged(relay, { active: 1 });
    const descriptors = relay.descriptors();
    const sockets = relay.sockets();
    const seeds = Array.from({ length: CONNECTIONS_AT_ONCE }, (_, seed) => seed);
    const clients = await Promise.all(seeds.map((seed) => connectClient({ ...relay, expectPattern: seed })));
    await whenAllIsAcknowledged(relay, { active: 1 + CONNECTIONS_AT_ONCE });
    {
      const paths = [...socketsSince(relay, sockets), 'anon_inode:[eventpoll]'];
      await using forcing = await forceErrors(relay.pid, {
        calls: INTERRUPTIBLE_CALLS,
        error: 'EINTR',
        when: '1+2',
        paths,
      });
      await Promise.all(clients.map(talkSlowly));
      await forcing.forced;
      for (const client of clients) assert.equal(client.received, PATTERN_BYTES);
    }
    const later = await whenAllIsAcknowledged(relay, { active: 1 });
    assert.equal(later.sent - earlier.sent, CONNECTIONS_AT_ONCE * PATTERN_BYTES);
    assert.deepEqual(failuresSince(earlier.outcomes, later.outcomes), {});
    await Promise.all(clients.map((client) => client.close()));
    await expectNoSpin();
    await expectNoLeak(descriptors);
  });

  /** Forces errors during `act`, and checks that another connection goes on. Returns how many bytes `act` has received. */
  async function whileForcing(what: Parameters<typeof forceErrors>[1], act: () => Promise<number>): Promise<number> {
    await using forcing = await forceErrors(relay.pid, what);
    const [received] = await Promise.all([act(), forcing.forced]);
    await talk(bystander);
    await forcing.stop();
    const calls = forcing.calls();
    assert.ok(calls.length < MAX_CALLS, `${calls.length} system calls:\n${calls.slice(-50).join('\n')}`);
    return received;
  }

  /** The process may have closed other descriptors than those of connections since it started. */
  function expectNoLeak(earlier: number): Promise<void> {
    return eventually(() => {
      const descriptors = relay.descriptors();
      assert.ok(descriptors <= earlier, `${descriptors} descriptors are open, and ${earlier} were open before`);
    });
  }

  /** Fails if the event loop turns although nothing happens: round trips of an undisturbed connection need few turns. */
  async function expectNoSpin(): Promise<void> {
    const { turns } = await relay.report();
    for (let count = 0; count < ROUND_TRIPS; count += 1) await talk(bystander);
    const more = (await relay.report()).turns - turns;
    assert.ok(more <= ROUND_TRIPS * MAX_TURNS_PER_ROUND_TRIP, `${more} turns for ${ROUND_TRIPS} round trips`);
  }
});

/** Waits until the clients have acknowledged everything, and the given number of connections is open. */
function whenAllIsAcknowledged(relay: RelayProcess, { active }: { active: number }): Promise<RelayReport> {
  return eventually(async () => {
    const report = await relay.report(1);
    assert.deepEqual({ unacknowledged: report.unacknowledged, active: report.active }, { unacknowledged: 0, active });
    return report;
  });
}

function isTransfer(call: string): boolean {
  return call === 'recvfrom' || call === 'sendto';
}

function socketsSince(relay: RelayProcess, earlier: readonly string[]): string[] {
  return relay.sockets().filter((socket) => !earlier.includes(socket));
}

function failuresSince(earlier: RelayReport['outcomes'], later: RelayReport['outcomes']): RelayReport['outcomes'] {
  const names = (Object.keys(later) as Outcome[]).filter((name) => name !== 'completed');
  const counts = names.map((name) => [name, (later[name] ?? 0) - (earlier[name] ?? 0)] as const);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

/** Sends random bytes, and expects their echo. */
async function talk(client: TestClient): Promise<void> {
  const bytes = randomBytes(MESSAGE_BYTES);
  await client.send(bytes);
  assert.deepEqual(await client.take(bytes.length), bytes);
}

/** Sends a pattern, and reads its echo with pauses, so that the relay has to queue bytes. */
async function talkSlowly(client: TestClient, seed: number): Promise<void> {
  client.pause();
  const sending = client.sendPattern({ bytes: PATTERN_BYTES, seed }).then(() => client.end());
  for (let wanted = PATTERN_STEP; wanted < PATTERN_BYTES; wanted += PATTERN_STEP) {
    client.resume();
    await client.waitForBytes(wanted);
    client.pause();
    await new Promise((resolve) => setImmediate(resolve));
  }
  client.resume();
  await sending;
  assert.deepEqual(await client.ended, { kind: 'end' });
}

async function talkAgain(open: TestClient): Promise<number> {
  await talk(open);
  return 0;
}

async function end(client: TestClient): Promise<void> {
  await client.end();
  assert.deepEqual(await client.ended, { kind: 'end' });
}

async function connectAndTalk(relay: RelayProcess): Promise<number> {
  await using client = await connectClient(relay);
  await talk(client);
  await end(client);
  return client.received;
}

async function expectRefusal(relay: RelayProcess): Promise<number> {
  assert.deepEqual(await connectAndAwaitEnd(relay), { kind: 'error', code: 'ECONNRESET' });
  return 0;
}

async function expectReset(client: TestClient): Promise<number> {
  await client.send('x');
  assert.deepEqual(await client.ended, { kind: 'error', code: 'ECONNRESET' });
  return 0;
}
