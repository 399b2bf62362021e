import type { Random } from './random.ts';

// Generates the scripts of clients from random numbers. A script is a list of steps.
export type Step =
  /** Writes bytes without waiting. `consumedByProxy` marks a PROXY header, which the endpoint does not receive. */
  | { readonly kind: 'write'; readonly bytes: Buffer; readonly consumedByProxy?: true }
  /** Sends bytes of the client's pattern in chunks. */
  | { readonly kind: 'send'; readonly bytes: number; readonly chunk: number; readonly gapMs: number }
  /** Waits for the echo of all sent bytes. */
  | { readonly kind: 'await-echo' }
  | { readonly kind: 'read'; readonly bytes: number }
  | { readonly kind: 'sleep'; readonly ms: number }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  | { readonly kind: 'send-fin' }
  | { readonly kind: 'await-fin' }
  /** Sends RST. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'close' };

/** `orderly` clients end with FIN, `aborting` clients mostly with RST. `impatient` clients get no response and end after a short time. */
export type ClientProfile = 'orderly' | 'aborting' | 'tls' | 'impatient';
const CLOSE_STEPS: readonly Step[] = [{ kind: 'send-fin' }, { kind: 'await-fin' }];

export function scriptFor(profile: ClientProfile, random: Random, host: string): Step[] {
  switch (profile) {
    case 'orderly':
      return orderlySteps(random);
    case 'aborting':
      return random.chance(0.4) ? orderlySteps(random) : abortingSteps(random);
    case 'tls':
      return tlsSteps(random, host);
    case 'impatient':
      return impatientSteps(random);
  }
}

/** Returns a script that starts with a PROXY header. Some headers are malformed. */
export function scriptWithProxyHeader(profile: ClientProfile, random: Random, host: string): Step[] {
  if (random.chance(0.6)) return [headerStep(goodHeader(random)), ...scriptFor(profile, random, host)];
  return [headerStep(badHeader(random)), ...stepsAfterBadHeader(random)];
}

function orderlySteps(random: Random): Step[] {
  const small = (): Step => sendStep(random.integer(1, 2_000));
  return random.pick<() => Step[]>([
    () => [...repeatSteps(random.integer(1, 20), () => [small(), { kind: 'await-echo' }]), ...CLOSE_STEPS],
    () => [small(), { kind: 'await-echo' }, ...CLOSE_STEPS],
    () => [sendStep(random.integer(64_000, 1_500_000)), ...CLOSE_STEPS],
    () => [small(), ...CLOSE_STEPS],
    () => [
      { kind: 'pause' },
      sendStep(random.integer(100_000, 700_000)),
      sleepStep(random, 500, 2_500),
      { kind: 'resume' },
      ...CLOSE_STEPS,
    ],
    () => [{ kind: 'send', bytes: random.integer(10, 40), chunk: 1, gapMs: random.integer(20, 90) }, ...CLOSE_STEPS],
    () => [sleepStep(random, 500, 6_000), small(), { kind: 'await-echo' }, ...CLOSE_STEPS],
    () => [...CLOSE_STEPS],
  ])();
}

function abortingSteps(random: Random): Step[] {
  const reset: Step = { kind: 'reset' };
  return random.pick<() => Step[]>([
    () => [reset],
    () => [sleepStep(random, 1, 50), reset],
    () => [sendStep(random.integer(1, 5_000)), reset],
    () => [sendStep(random.integer(1, 5_000)), sleepStep(random, 1, 30), reset],
    () => [sendStep(random.integer(100_000, 1_000_000)), { kind: 'read', bytes: 1_000 }, reset],
    () => [sendStep(200), { kind: 'await-echo' }, reset],
    () => [sendStep(200), { kind: 'send-fin' }, reset],
    () => [{ kind: 'send-fin' }, { kind: 'await-fin' }],
    () => [
      { kind: 'pause' },
      sendStep(random.integer(100_000, 400_000)),
      sleepStep(random, 50, 1_500),
      { kind: 'close' },
    ],
    () => [{ kind: 'close' }],
  ])();
}

function tlsSteps(random: Random, host: string): Step[] {
  const hello = clientHello(random.chance(0.5) ? host : `h${random.integer(1, 99)}.many.example.com`);
  const write = (bytes: Buffer): Step => ({ kind: 'write', bytes });
  return random.pick<() => Step[]>([
    () => [write(hello), ...orderlySteps(random)],
    () => [write(hello), ...orderlySteps(random)],
    () => [write(hello), ...abortingSteps(random)],
    () => [...writeInPieces(hello, random), ...orderlySteps(random)],
    () => [write(clientHello('elsewhere.example.net')), ...CLOSE_STEPS],
    () => [write(garbage(random)), ...CLOSE_STEPS],
    () => [write(Buffer.from('GET / HTTP/1.1\r\nHost: sealed.example.com\r\n\r\n')), ...CLOSE_STEPS],
    () => [write(Buffer.concat([hello.subarray(0, 5), garbage(random)])), sleepStep(random, 1, 100), { kind: 'reset' }],
    () => [write(hello.subarray(0, random.integer(1, hello.length - 1))), ...CLOSE_STEPS],
    () => [write(hello.subarray(0, random.integer(1, hello.length - 1))), sleepStep(random, 1, 500), { kind: 'reset' }],
  ])();
}

function impatientSteps(random: Random): Step[] {
  const stay = sleepStep(random, 50, 4_500);
  return random.pick<() => Step[]>([
    () => [sendStep(random.integer(1, 2_000)), stay, ...CLOSE_STEPS],
    () => [sendStep(random.integer(1, 2_000)), stay, { kind: 'reset' }],
    () => [stay, ...CLOSE_STEPS],
    () => [{ kind: 'pause' }, sendStep(500), stay, { kind: 'close' }],
    () => [sendStep(random.integer(100_000, 600_000)), stay, ...CLOSE_STEPS],
  ])();
}

function goodHeader(random: Random): Buffer {
  const text = `TCP4 192.0.2.${random.integer(1, 254)} 198.51.100.1 ${random.integer(1_024, 65_535)} 443`;
  if (random.chance(0.5)) return Buffer.from(`PROXY ${text}\r\n`);
  const block = Buffer.from([192, 0, 2, random.integer(1, 254), 198, 51, 100, 1, random.integer(4, 255), 7, 1, 187]);
  return Buffer.concat([Buffer.from('0d0a0d0a000d0a515549540a2111000c', 'hex'), block]);
}

function badHeader(random: Random): Buffer {
  return random.pick([
    () => garbage(random),
    () => Buffer.from('PROXY TCP4 192.0.2.999 198.51.100.1 1 2\r\nhello'),
    () => Buffer.from(`PROXY UNKNOWN ${'x'.repeat(200)}`),
    () => Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    () => Buffer.from('PROXY TCP4 192.0.2.1 198.'),
    () => Buffer.from('0d0a0d0a000d0a515549540a2111ffff00', 'hex'),
  ])();
}

/** Returns the end of a script with a malformed header. Some clients send nothing more and wait until the proxy closes the connection. */
function stepsAfterBadHeader(random: Random): Step[] {
  return random
    .pick<readonly Step[]>([CLOSE_STEPS, [sleepStep(random, 1, 300), { kind: 'reset' }], [{ kind: 'await-fin' }]])
    .slice();
}

function headerStep(bytes: Buffer): Step {
  return { kind: 'write', bytes, consumedByProxy: true };
}

function garbage(random: Random): Buffer {
  return Buffer.from(Array.from({ length: random.integer(1, 600) }, () => random.integer(0, 255)));
}

function writeInPieces(bytes: Buffer, random: Random): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + random.integer(1, 60));
    steps.push({ kind: 'write', bytes: bytes.subarray(at, end) }, sleepStep(random, 1, 15));
    at = end;
  }
  return steps;
}

function sendStep(bytes: number): Step {
  return { kind: 'send', bytes, chunk: 64 * 1024, gapMs: 0 };
}

function sleepStep(random: Random, min: number, max: number): Step {
  return { kind: 'sleep', ms: random.integer(min, max) };
}

function repeatSteps(times: number, steps: () => Step[]): Step[] {
  return Array.from({ length: times }, steps).flat();
}

/** Returns a TLS 1.2 ClientHello (RFC 8446, 4.1.2) in one record, with `host` as the server name (RFC 6066, 3). */
export function clientHello(host: string): Buffer {
  const name = Buffer.from(host, 'ascii');
  const serverName = withLength(2, Buffer.concat([Buffer.from([0]), withLength(2, name)]));
  const extensions = Buffer.concat([extension(0, serverName), extension(10, Buffer.from([0, 2, 0, 29]))]);
  const body = Buffer.concat([
    Buffer.from([3, 3]),
    Buffer.alloc(32, 7), // random
    withLength(1, Buffer.alloc(32, 9)), // session
    withLength(2, Buffer.from([0x13, 0x01, 0xc0, 0x2f])), // suites
    withLength(1, Buffer.from([0])), // compression
    withLength(2, extensions),
  ]);
  const message = Buffer.concat([Buffer.from([1]), withLength(3, body)]);
  return Buffer.concat([Buffer.from([22, 3, 1]), withLength(2, message)]);
}

function extension(type: number, data: Buffer): Buffer {
  return Buffer.concat([Buffer.from([type >> 8, type & 0xff]), withLength(2, data)]);
}

function withLength(bytes: number, data: Buffer): Buffer {
  const length = Buffer.alloc(bytes);
  length.writeUIntBE(data.length, 0, bytes);
  return Buffer.concat([length, data]);
}
