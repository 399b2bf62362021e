import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { ClientResult } from '../../src/soak/client-totals.ts';
import { addSocketKinds, countDescriptorsByKind } from '../../src/soak/process-resources.ts';
import { seededRandom } from '../../src/soak/random.ts';
import { type ClientProfile, clientHello, type Step, scriptFor, scriptWithProxyHeader } from '../../src/soak/script.ts';
import { runTcpClient } from '../../src/soak/tcp-client.ts';

const host = 'sealed.example.com';

describe('clients of a soak', () => {
  test('repeat their scripts with the same seed', () => {
    for (const character of ['orderly', 'aborting', 'tls', 'impatient'] satisfies ClientProfile[]) {
      const scripts = (seed: number): Step[][] => {
        const random = seededRandom(seed);
        return Array.from({ length: 50 }, () => scriptFor(character, random, host));
      };
      assert.deepEqual(scripts(7), scripts(7));
      assert.notDeepEqual(scripts(7), scripts(8));
    }
  });

  test('end by FIN in both directions if they are orderly', () => {
    const random = seededRandom(3);
    for (let time = 0; time < 200; time++) {
      const kinds = scriptFor('orderly', random, host).map(({ kind }) => kind);
      assert.deepEqual(kinds.slice(-2), ['send-fin', 'await-fin']);
    }
  });

  test('start with a PROXY header if they come from a trusted load balancer', () => {
    const random = seededRandom(3);
    for (let time = 0; time < 200; time++) {
      const [first, ...others] = scriptWithProxyHeader('orderly', random, host);
      assert.ok(first?.kind === 'write' && first.consumedByProxy);
      assert.ok(others.every((step) => step.kind !== 'write' || !step.consumedByProxy));
    }
  });

  test('send a ClientHello in one complete record with the host', () => {
    const hello = clientHello(host);
    assert.equal(hello[0], 22);
    assert.equal(hello.readUInt16BE(3), hello.length - 5);
    assert.equal(hello.readUIntBE(6, 3), hello.length - 9);
    assert.ok(hello.includes(host));
  });

  const clean: Step[] = [
    { kind: 'send', bytes: 300_000, chunk: 64 * 1024, gapMs: 0 },
    { kind: 'send-fin' },
    { kind: 'await-fin' },
  ];

  test('are clean if every byte comes back', async (t) => {
    assert.deepEqual(await against(t, (socket) => socket.pipe(socket), clean), {
      outcome: 'clean',
      sent: 300_000,
      read: 300_000,
    });
  });

  test('detect a wrong byte', async (t) => {
    const corrupt = (socket: Socket): void => {
      socket.once('data', (bytes: Buffer) => {
        bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
        socket.write(bytes);
      });
    };
    assert.equal((await against(t, corrupt, clean))?.outcome, 'corrupted');
  });

  test('report an early FIN', async (t) => {
    const cut = (socket: Socket): void => {
      socket.resume();
      socket.end();
    };
    assert.equal((await against(t, cut, clean))?.outcome, 'closed-early');
  });

  test('distinguish a reset by the proxy from their own reset', async (t) => {
    const reset = (socket: Socket): void => void socket.once('data', () => socket.resetAndDestroy());
    assert.equal((await against(t, reset, clean))?.outcome, 'reset');
    const own: Step[] = [{ kind: 'send', bytes: 10, chunk: 10, gapMs: 0 }, { kind: 'await-echo' }, { kind: 'reset' }];
    assert.deepEqual(await against(t, (socket) => socket.pipe(socket), own), {
      outcome: 'aborted',
      sent: 10,
      read: 10,
    });
  });

  test('return undefined if they cannot connect', async () => {
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    assert.equal(await runClientAt(port, clean), undefined);
  });
});

describe('countDescriptorsByKind', () => {
  test('counts sockets by the tables of the kernel', () => {
    const kinds = new Map<string, string>();
    const tcp = 'sl local rem st tx tr retr uid timeout inode\n';
    addSocketKinds(kinds, 'tcp', `${tcp}0: A:1 B:0 0A 0:0 0:0 0 0 0 11 1\n1: A:1 B:2 01 0:0 0:0 0 0 0 12 1\n`);
    addSocketKinds(kinds, 'udp6', `${tcp}0: A:1 B:0 07 0:0 0:0 0 0 0 13 1\n`);
    addSocketKinds(kinds, 'unix', 'Num RefCount Protocol Flags Type St Inode Path\nff: 2 0 0 1 3 14\n');
    const sockets = [11, 12, 13, 14, 15].map((inode) => `socket:[${inode}]`);
    assert.deepEqual(countDescriptorsByKind([...sockets, 'pipe:[7]', 'anon_inode:[eventpoll]', '/dev/null'], kinds), {
      'tcp listener': 1,
      tcp: 1,
      udp: 1,
      unix: 1,
      'socket without peer': 1,
      pipe: 1,
      eventpoll: 1,
      file: 1,
    });
  });
});

async function against(
  t: TestContext,
  serve: (socket: Socket) => void,
  script: readonly Step[],
): Promise<ClientResult | undefined> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    serve(socket);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => server.close());
  return runClientAt((server.address() as AddressInfo).port, script);
}

function runClientAt(port: number, script: readonly Step[]): Promise<ClientResult | undefined> {
  const { signal } = new AbortController();
  return runTcpClient({ port, source: '127.0.0.1', script, isEcho: true, key: 5, onConnect: () => {}, signal });
}
