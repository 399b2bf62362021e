// Program `load-process.ts`: clients that open connections at random times, send a byte and wait for its echo. Counts the connections
// that were offered and admitted in each tenth of a second. A connection counts as offered once, even if its client
// tries several proxies.
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { serveRpc } from '../processes/rpc.ts';
import type { SocketAddress } from '../propagation/topology.ts';
import { seededRandom } from '../soak/random.ts';
import { hasFailoverAt, offeredAt, TOTAL_SECONDS, WARM_UP_SECONDS } from './phases.ts';

export type ConnectionCounts = {
  /** By tenth of a second from the start of the first phase. */
  readonly offered: readonly number[];
  readonly admitted: readonly number[];
};

export type LimitsLoadRpc = {
  /** Offers all phases to the proxies. Takes `WARM_UP_SECONDS + TOTAL_SECONDS`. */
  run(proxies: readonly SocketAddress[], seed: number): Promise<ConnectionCounts>;
};

const TENTHS_PER_SECOND = 10;
const RESPONSE_TIMEOUT_MS = 2_000;
/** A client that waits longer than this for a response counts at the time of its attempt, as every client does. */
const SETTLE_MS = RESPONSE_TIMEOUT_MS + 500;

serveRpc<LimitsLoadRpc>({ run });

async function run(proxies: readonly SocketAddress[], seed: number): Promise<ConnectionCounts> {
  const tenths = TOTAL_SECONDS * TENTHS_PER_SECOND;
  const offered = new Array<number>(tenths).fill(0);
  const admitted = new Array<number>(tenths).fill(0);
  const random = seededRandom(seed);
  const startedAt = performance.now() + WARM_UP_SECONDS * 1_000;
  const nowSeconds = (): number => (performance.now() - startedAt) / 1_000;
  let attempts = 0;
  const attempt = (proxy: number, second: number): void => {
    attempts += 1;
    const tenth = Math.floor(second * TENTHS_PER_SECOND);
    if (tenth >= 0) offered[tenth] = (offered[tenth] ?? 0) + 1;
    // An admission counts when the endpoint's answer arrives, at most a few milliseconds after the proxy's decision.
    const targets = hasFailoverAt(second) ? failoverOrder(proxies, proxy, attempts) : proxies.slice(proxy, proxy + 1);
    echo(targets, () => {
      const at = Math.floor(nowSeconds() * TENTHS_PER_SECOND);
      if (at >= 0 && at < tenths) admitted[at] = (admitted[at] ?? 0) + 1;
    });
  };
  await Promise.all(
    proxies.map(async (_, proxy) => {
      for (let due = -WARM_UP_SECONDS; due < TOTAL_SECONDS; ) {
        const rate = offeredAt(due)[proxy] ?? 0;
        if (rate === 0) {
          due += 1 / TENTHS_PER_SECOND;
          continue;
        }
        due += -Math.log(1 - random.next()) / rate;
        const waitMs = (due - nowSeconds()) * 1_000;
        if (waitMs > 1) await sleep(waitMs);
        if (due < TOTAL_SECONDS) attempt(proxy, due);
      }
    }),
  );
  await sleep(SETTLE_MS);
  return { offered, admitted };
}

/** Returns the proxy's address, followed by the other addresses, rotated by `turn`. The load of a dead proxy thus spreads evenly. */
function failoverOrder(proxies: readonly SocketAddress[], proxy: number, turn: number): readonly SocketAddress[] {
  const others = proxies.filter((_, index) => index !== proxy);
  const first = turn % others.length;
  return [...proxies.slice(proxy, proxy + 1), ...others.slice(first), ...others.slice(0, first)];
}

/**
 * Connects to the first address, or to the next one if nobody listens at the first, and calls `onAdmitted` if the endpoint echoes a
 * byte. A refused client sees a reset, or the end of the connection.
 */
function echo([address, ...nextAddresses]: readonly SocketAddress[], onAdmitted: () => void): void {
  if (address === undefined) return;
  const socket = connect({ ...address, timeout: RESPONSE_TIMEOUT_MS, noDelay: true });
  socket.once('connect', () => socket.write('x'));
  socket.once('data', () => {
    onAdmitted();
    socket.resetAndDestroy();
  });
  socket.on('error', ({ code }: NodeJS.ErrnoException) => {
    socket.destroy();
    if (code === 'ECONNREFUSED') echo(nextAddresses, onAdmitted);
  });
  socket.once('end', () => socket.destroy());
  socket.once('timeout', () => socket.destroy());
}
