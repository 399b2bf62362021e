// Sends bytes of a hostile client through a proxy, and says what the client and the endpoint behind the proxy must get.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { REFUSAL_STATUS, type RequestRefusal } from '../../../src/http/h1/refusals.ts';
import { type ReadMessage, readRequests } from '../h1/read-messages.ts';

/**
 * How a client writes: in parts that end at `cuts`, each in a turn of the event loop of its own. `isSlow`: each part waits
 * until the kernel has taken the part before.
 */
export interface Writing {
  readonly cuts: readonly number[];
  readonly isSlow: boolean;
}

export interface Expected {
  /** The requests that the endpoint gets to their end. */
  readonly forwarded: readonly ReadMessage[];
  /** The request of which the endpoint may get a part. */
  readonly partial: ReadMessage | undefined;
  /** The status of each answer. */
  readonly statuses: readonly number[];
  /** The methods of the requests that are answered. `-` if the head of a request is not valid. */
  readonly methods: readonly string[];
}

/** Returns what must become of these bytes, if the endpoint answers each request with 200. */
export function expectedFor(bytes: Uint8Array): Expected {
  const { messages, end, partial } = readRequests(bytes);
  const forwarded: ReadMessage[] = [];
  const methods: string[] = [];
  const before = (): number[] => forwarded.map(() => 200);
  for (const message of messages) {
    methods.push(methodOf(message));
    // RFC 9110 §10.1.1: an expectation that is not understood is answered with a 417.
    if (hasUnknownExpectation(message)) return { forwarded, partial: undefined, statuses: [...before(), 417], methods };
    forwarded.push(message);
    // RFC 9112 §9.6: a server reads nothing after a request with `Connection: close`.
    if (endsConnection(message)) return { forwarded, partial: undefined, statuses: before(), methods };
  }
  const isRefused = end !== 'end' && !end.startsWith('more');
  if (partial !== undefined && hasUnknownExpectation(partial))
    return { forwarded, partial: undefined, statuses: [...before(), 417], methods: [...methods, methodOf(partial)] };
  if (!isRefused) return { forwarded, partial, statuses: before(), methods };
  const statuses = [...before(), REFUSAL_STATUS[end as RequestRefusal]];
  return { forwarded, partial, statuses, methods: [...methods, partial === undefined ? '-' : methodOf(partial)] };
}

const methodOf = ({ start }: ReadMessage): string => start.slice(0, start.indexOf(' '));

function valuesOf({ fields }: ReadMessage, wanted: string): readonly string[] {
  return fields.filter(([name]) => name.toLowerCase() === wanted).map(([, value]) => value.toLowerCase());
}

function hasUnknownExpectation(message: ReadMessage): boolean {
  const expectations = valuesOf(message, 'expect');
  if (expectations.length === 0 || message.framing === 'none' || message.start.endsWith('1.0')) return false;
  return expectations.length > 1 || expectations[0] !== '100-continue';
}

function endsConnection(message: ReadMessage): boolean {
  const options = valuesOf(message, 'connection').flatMap((value) => value.split(',').map((option) => option.trim()));
  return options.includes('close') || (message.start.endsWith('1.0') && !options.includes('keep-alive'));
}

export interface Answer {
  readonly status: number;
  readonly fields: ReadonlyMap<string, string>;
}

/**
 * Sends the bytes, and FIN after the answers that are expected. Returns all answers. Rejects if the client gets a byte that
 * belongs to no answer, or an answer whose framing is ambiguous.
 */
export async function exchange(
  to: { readonly host: string; readonly port: number },
  bytes: Uint8Array,
  { writing, expected }: { readonly writing: Writing; readonly expected: Expected },
): Promise<readonly Answer[]> {
  const { methods } = expected;
  const socket = connect({ ...to, noDelay: true, ...(writing.isSlow ? { highWaterMark: 1 } : {}) });
  socket.setTimeout(10_000, () => socket.destroy(new Error('the proxy neither answers nor ends the connection')));
  let received = '';
  let failure: Error | undefined;
  const { promise: answered, resolve } = Promise.withResolvers<void>();
  const closed = new Promise<void>((done) => socket.on('close', () => done()));
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // The proxy resets a connection whose request is cut off by FIN.
    if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') failure = error;
  });
  socket.on('data', (part) => {
    received += part.toString('latin1');
    if (readAnswers(received, methods).answers.length >= expected.statuses.length) resolve();
  });
  if (expected.statuses.length === 0) resolve();
  await once(socket, 'connect');
  await write(socket, bytes, writing);
  await Promise.race([answered, closed]);
  socket.end();
  await closed;
  if (failure !== undefined) throw failure;
  const { answers, rest } = readAnswers(received, methods);
  assert.equal(rest, '', 'bytes that belong to no answer');
  return answers;
}

async function write(socket: Socket, bytes: Uint8Array, { cuts, isSlow }: Writing): Promise<void> {
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    if (socket.destroyed) return;
    const hasDrained = socket.write(bytes.subarray(from, to));
    if (isSlow && !hasDrained) await Promise.race([once(socket, 'drain'), once(socket, 'close')]);
    await setImmediate();
    from = to;
  }
}

/** Reads the answers to requests with these methods. `rest` is what follows the last complete answer. */
function readAnswers(text: string, methods: readonly string[]): { readonly answers: Answer[]; readonly rest: string } {
  const answers: Answer[] = [];
  let rest = text;
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n');
    if (headEnd < 0) return { answers, rest };
    const [statusLine = '', ...lines] = rest.slice(0, headEnd).split('\r\n');
    assert.match(statusLine, /^HTTP\/1\.1 \d{3} [ -~]+$/);
    const fields = new Map<string, string>();
    for (const line of lines) {
      const [, name = '', value = ''] =
        /^([A-Za-z-]+): ([ -~]*)$/.exec(line) ?? assert.fail(`not a field line: ${line}`);
      assert.ok(!fields.has(name.toLowerCase()), `${name} twice`);
      fields.set(name.toLowerCase(), value);
    }
    assert.match(fields.get('content-length') ?? '', /^\d+$/);
    assert.equal(fields.has('transfer-encoding'), false);
    const bodyLength = methods[answers.length] === 'HEAD' ? 0 : Number(fields.get('content-length'));
    const end = headEnd + 4 + bodyLength;
    if (end > rest.length) return { answers, rest };
    answers.push({ status: Number(statusLine.slice(9, 12)), fields });
    rest = rest.slice(end);
  }
}
