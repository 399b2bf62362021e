import type { Random } from './random.ts';

// What one client does, decided in advance from the numbers of its seed.
export type Step =
  /** Written at once, without waiting. `uncounted`: the proxy takes it for itself. */
  | { readonly kind: 'say'; readonly bytes: Buffer; readonly uncounted?: true }
  /** So many bytes of the client's own, in chunks. */
  | { readonly kind: 'send'; readonly bytes: number; readonly chunk: number; readonly gapMs: number }
  /** Waits until all that was sent has come back. */
  | { readonly kind: 'echoed' }
  | { readonly kind: 'read'; readonly bytes: number }
  | { readonly kind: 'rest'; readonly ms: number }
  | { readonly kind: 'pause' }
  | { readonly kind: 'resume' }
  /** FIN. */
  | { readonly kind: 'finish' }
  /** Waits for the FIN of the other side. */
  | { readonly kind: 'ended' }
  /** RST. */
  | { readonly kind: 'reset' }
  | { readonly kind: 'close' };

/** `hopeful`: it does not know what will answer, and does not stay for long. */
export type ClientProfile = 'calm' | 'rough' | 'sealed' | 'hopeful';
const CLOSE_STEPS: readonly Step[] = [{ kind: 'finish' }, { kind: 'ended' }];

export function scriptFor(character: ClientProfile, random: Random, host: string): Step[] {
  switch (character) {
    case 'calm':
      return calmSteps(random);
    case 'rough':
      return random.chance(0.4) ? calmSteps(random) : roughSteps(random);
    case 'sealed':
      return tlsSteps(random, host);
    case 'hopeful':
      return hopefulSteps(random);
  }
}

/** Comes with a PROXY header, which may be bad. */
export function scriptWithProxyHeader(character: ClientProfile, random: Random, host: string): Step[] {
  if (random.chance(0.6)) return [headerStep(goodHeader(random)), ...scriptFor(character, random, host)];
  return [headerStep(badHeader(random)), ...stepsAfterBadHeader(random)];
}

function calmSteps(random: Random): Step[] {
  const small = (): Step => sendStep(random.integer(1, 2_000));
  return random.pick<() => Step[]>([
    () => [...repeatSteps(random.integer(1, 20), () => [small(), { kind: 'echoed' }]), ...CLOSE_STEPS],
    () => [small(), { kind: 'echoed' }, ...CLOSE_STEPS],
    () => [sendStep(random.integer(64_000, 1_500_000)), ...CLOSE_STEPS],
    () => [small(), ...CLOSE_STEPS],
    () => [
      { kind: 'pause' },
      sendStep(random.integer(100_000, 700_000)),
      restStep(random, 500, 2_500),
      { kind: 'resume' },
      ...CLOSE_STEPS,
    ],
    () => [{ kind: 'send', bytes: random.integer(10, 40), chunk: 1, gapMs: random.integer(20, 90) }, ...CLOSE_STEPS],
    () => [restStep(random, 500, 6_000), small(), { kind: 'echoed' }, ...CLOSE_STEPS],
    () => [...CLOSE_STEPS],
  ])();
}

function roughSteps(random: Random): Step[] {
  const reset: Step = { kind: 'reset' };
  return random.pick<() => Step[]>([
    () => [reset],
    () => [restStep(random, 1, 50), reset],
    () => [sendStep(random.integer(1, 5_000)), reset],
    () => [sendStep(random.integer(1, 5_000)), restStep(random, 1, 30), reset],
    () => [sendStep(random.integer(100_000, 1_000_000)), { kind: 'read', bytes: 1_000 }, reset],
    () => [sendStep(200), { kind: 'echoed' }, reset],
    () => [sendStep(200), { kind: 'finish' }, reset],
    () => [{ kind: 'finish' }, { kind: 'ended' }],
    () => [
      { kind: 'pause' },
      sendStep(random.integer(100_000, 400_000)),
      restStep(random, 50, 1_500),
      { kind: 'close' },
    ],
    () => [{ kind: 'close' }],
  ])();
}

function tlsSteps(random: Random, host: string): Step[] {
  const hello = clientHello(random.chance(0.5) ? host : `h${random.integer(1, 99)}.many.example.com`);
  const say = (bytes: Buffer): Step => ({ kind: 'say', bytes });
  return random.pick<() => Step[]>([
    () => [say(hello), ...calmSteps(random)],
    () => [say(hello), ...calmSteps(random)],
    () => [say(hello), ...roughSteps(random)],
    () => [...sayInPieces(hello, random), ...calmSteps(random)],
    () => [say(clientHello('elsewhere.example.net')), ...CLOSE_STEPS],
    () => [say(garbage(random)), ...CLOSE_STEPS],
    () => [say(Buffer.from('GET / HTTP/1.1\r\nHost: sealed.example.com\r\n\r\n')), ...CLOSE_STEPS],
    () => [say(Buffer.concat([hello.subarray(0, 5), garbage(random)])), restStep(random, 1, 100), { kind: 'reset' }],
    () => [say(hello.subarray(0, random.integer(1, hello.length - 1))), ...CLOSE_STEPS],
    () => [say(hello.subarray(0, random.integer(1, hello.length - 1))), restStep(random, 1, 500), { kind: 'reset' }],
  ])();
}

function hopefulSteps(random: Random): Step[] {
  const stay = restStep(random, 50, 4_500);
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

/** Some never send the rest, and wait until they are thrown out. */
function stepsAfterBadHeader(random: Random): Step[] {
  return random
    .pick<readonly Step[]>([CLOSE_STEPS, [restStep(random, 1, 300), { kind: 'reset' }], [{ kind: 'ended' }]])
    .slice();
}

function headerStep(bytes: Buffer): Step {
  return { kind: 'say', bytes, uncounted: true };
}

function garbage(random: Random): Buffer {
  return Buffer.from(Array.from({ length: random.integer(1, 600) }, () => random.integer(0, 255)));
}

function sayInPieces(bytes: Buffer, random: Random): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + random.integer(1, 60));
    steps.push({ kind: 'say', bytes: bytes.subarray(at, end) }, restStep(random, 1, 15));
    at = end;
  }
  return steps;
}

function sendStep(bytes: number): Step {
  return { kind: 'send', bytes, chunk: 64 * 1024, gapMs: 0 };
}

function restStep(random: Random, least: number, most: number): Step {
  return { kind: 'rest', ms: random.integer(least, most) };
}

function repeatSteps(times: number, steps: () => Step[]): Step[] {
  return Array.from({ length: times }, steps).flat();
}

/** A ClientHello of TLS 1.2 (RFC 8446, 4.1.2) in one record, which asks for `host` (RFC 6066, 3). */
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
