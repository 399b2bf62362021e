// What one client does, decided in advance from the numbers of its seed.
import { clientHello } from './client-hello.ts';
import type { Random } from './random.ts';

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
export type Character = 'calm' | 'rough' | 'sealed' | 'hopeful';

const leave: readonly Step[] = [{ kind: 'finish' }, { kind: 'ended' }];

export function scriptFor(character: Character, random: Random, host: string): Step[] {
  switch (character) {
    case 'calm':
      return calm(random);
    case 'rough':
      return random.chance(0.4) ? calm(random) : rough(random);
    case 'sealed':
      return sealed(random, host);
    case 'hopeful':
      return hopeful(random);
  }
}

/** Comes with a PROXY header, which may be bad. */
export function trustedScript(character: Character, random: Random, host: string): Step[] {
  if (random.chance(0.6)) return [header(goodHeader(random)), ...scriptFor(character, random, host)];
  return [header(badHeader(random)), ...badEnding(random)];
}

function calm(random: Random): Step[] {
  const small = (): Step => send(random.whole(1, 2_000));
  return random.pick<() => Step[]>([
    () => [...repeated(random.whole(1, 20), () => [small(), { kind: 'echoed' }]), ...leave],
    () => [small(), { kind: 'echoed' }, ...leave],
    () => [send(random.whole(64_000, 1_500_000)), ...leave],
    () => [small(), ...leave],
    () => [
      { kind: 'pause' },
      send(random.whole(100_000, 700_000)),
      rest(random, 500, 2_500),
      { kind: 'resume' },
      ...leave,
    ],
    () => [{ kind: 'send', bytes: random.whole(10, 40), chunk: 1, gapMs: random.whole(20, 90) }, ...leave],
    () => [rest(random, 500, 6_000), small(), { kind: 'echoed' }, ...leave],
    () => [...leave],
  ])();
}

function rough(random: Random): Step[] {
  const reset: Step = { kind: 'reset' };
  return random.pick<() => Step[]>([
    () => [reset],
    () => [rest(random, 1, 50), reset],
    () => [send(random.whole(1, 5_000)), reset],
    () => [send(random.whole(1, 5_000)), rest(random, 1, 30), reset],
    () => [send(random.whole(100_000, 1_000_000)), { kind: 'read', bytes: 1_000 }, reset],
    () => [send(200), { kind: 'echoed' }, reset],
    () => [send(200), { kind: 'finish' }, reset],
    () => [{ kind: 'finish' }, { kind: 'ended' }],
    () => [{ kind: 'pause' }, send(random.whole(100_000, 400_000)), rest(random, 50, 1_500), { kind: 'close' }],
    () => [{ kind: 'close' }],
  ])();
}

function sealed(random: Random, host: string): Step[] {
  const hello = clientHello(random.chance(0.5) ? host : `h${random.whole(1, 99)}.many.example.com`);
  const say = (bytes: Buffer): Step => ({ kind: 'say', bytes });
  return random.pick<() => Step[]>([
    () => [say(hello), ...calm(random)],
    () => [say(hello), ...calm(random)],
    () => [say(hello), ...rough(random)],
    () => [...inPieces(hello, random), ...calm(random)],
    () => [say(clientHello('elsewhere.example.net')), ...leave],
    () => [say(garbage(random)), ...leave],
    () => [say(Buffer.from('GET / HTTP/1.1\r\nHost: sealed.example.com\r\n\r\n')), ...leave],
    () => [say(Buffer.concat([hello.subarray(0, 5), garbage(random)])), rest(random, 1, 100), { kind: 'reset' }],
    () => [say(hello.subarray(0, random.whole(1, hello.length - 1))), ...leave],
    () => [say(hello.subarray(0, random.whole(1, hello.length - 1))), rest(random, 1, 500), { kind: 'reset' }],
  ])();
}

function hopeful(random: Random): Step[] {
  const stay = rest(random, 50, 4_500);
  return random.pick<() => Step[]>([
    () => [send(random.whole(1, 2_000)), stay, ...leave],
    () => [send(random.whole(1, 2_000)), stay, { kind: 'reset' }],
    () => [stay, ...leave],
    () => [{ kind: 'pause' }, send(500), stay, { kind: 'close' }],
    () => [send(random.whole(100_000, 600_000)), stay, ...leave],
  ])();
}

function goodHeader(random: Random): Buffer {
  const text = `TCP4 192.0.2.${random.whole(1, 254)} 198.51.100.1 ${random.whole(1_024, 65_535)} 443`;
  if (random.chance(0.5)) return Buffer.from(`PROXY ${text}\r\n`);
  const block = Buffer.from([192, 0, 2, random.whole(1, 254), 198, 51, 100, 1, random.whole(4, 255), 7, 1, 187]);
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
function badEnding(random: Random): Step[] {
  return random.pick<readonly Step[]>([leave, [rest(random, 1, 300), { kind: 'reset' }], [{ kind: 'ended' }]]).slice();
}

function header(bytes: Buffer): Step {
  return { kind: 'say', bytes, uncounted: true };
}

function garbage(random: Random): Buffer {
  return Buffer.from(Array.from({ length: random.whole(1, 600) }, () => random.whole(0, 255)));
}

function inPieces(bytes: Buffer, random: Random): Step[] {
  const steps: Step[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = Math.min(bytes.length, at + random.whole(1, 60));
    steps.push({ kind: 'say', bytes: bytes.subarray(at, end) }, rest(random, 1, 15));
    at = end;
  }
  return steps;
}

function send(bytes: number): Step {
  return { kind: 'send', bytes, chunk: 64 * 1024, gapMs: 0 };
}

function rest(random: Random, least: number, most: number): Step {
  return { kind: 'rest', ms: random.whole(least, most) };
}

function repeated(times: number, steps: () => Step[]): Step[] {
  return Array.from({ length: times }, steps).flat();
}
