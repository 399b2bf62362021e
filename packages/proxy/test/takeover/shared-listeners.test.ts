import assert from 'node:assert/strict';
import { endianness } from 'node:os';
import { describe, test } from 'node:test';
import { echoServer } from '@weir/testkit';
import { findUnsharedListener, procNetAddress } from '../../src/takeover/shared-listeners.ts';
import { loopbackAddress, PORT } from '../fixtures/listen-address.ts';

describe('findUnsharedListener', () => {
  test('formats addresses as in /proc/net', {
    skip: endianness() !== 'LE' && 'the expected text is little-endian',
  }, () => {
    const cases: [string, string][] = [
      ['127.0.0.1', '0100007F:1F90'],
      ['10.240.0.1', '0100F00A:1F90'],
      ['::', '00000000000000000000000000000000:1F90'],
      ['::1', '00000000000000000000000001000000:1F90'],
      ['2001:db8::a:1', 'B80D01200000000000000000' + '01000A00:1F90'],
      ['::ffff:127.0.0.1', '0000000000000000FFFF00000100007F:1F90'],
    ];
    for (const [address, text] of cases) assert.equal(procNetAddress({ address, port: PORT }), text);
  });

  test('returns a listener until another socket of this user shares its port', async () => {
    const host = loopbackAddress();
    await using _ours = await echoServer({ host, port: PORT, reusePort: true });
    const own = [{ protocol: 'TCP' as const, at: { address: host, port: PORT }, sockets: 1 }];
    assert.equal(await findUnsharedListener(own), own[0]);
    await using _other = await echoServer({ host, port: PORT, reusePort: true });
    assert.equal(await findUnsharedListener(own), undefined);
  });

  test('does the same over IPv6', async () => {
    await using ours = await echoServer({ host: '::1', port: 0, reusePort: true });
    const own = [{ protocol: 'TCP' as const, at: { address: '::1', port: ours.port }, sockets: 1 }];
    assert.equal(await findUnsharedListener(own), own[0]);
    await using _other = await echoServer({ host: '::1', port: ours.port, reusePort: true });
    assert.equal(await findUnsharedListener(own), undefined);
  });
});
