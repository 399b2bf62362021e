// A self-test on loopback that a proxy runs before it starts. It checks the system calls, the layouts of their structures, and errno.
import { strict as assert } from 'node:assert';
import { hostOf, hostText } from '../peer-address.ts';
import { countDroppedDatagrams, DatagramSlots } from './datagrams.ts';
import { EventPoll } from './event-poll.ts';
import { NativeMemory } from './ffi.ts';
import { AF_INET, EPOLLERR, EPOLLIN, SO_REUSEADDR, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET } from './layouts.ts';
import {
  acceptConnection,
  acceptedPeer,
  bindSocket,
  closeDescriptor,
  connectSocket,
  listenSocket,
  localPort,
  openSocket,
  receive,
  resetConnection,
  setOption,
  shutdownWrite,
  takeSocketError,
  transmit,
  transmitRange,
  unacknowledgedSequence,
} from './sockets.ts';

const HOST = '127.0.0.1';
const EAGAIN = -11;
const EBADF = -9;
const EPIPE = -32;
const ECONNREFUSED = -111;
const EINPROGRESS = -115;
const GENERATION = 0x89abcdef;
const WAIT_MS = 2_000;

/** Throws an error that names the first system call with an unexpected result. Takes a few milliseconds. */
export function checkSyscalls(): void {
  const poll = new EventPoll();
  const open: number[] = [];
  try {
    testConnection(poll, open);
    testDatagrams(poll, open);
  } finally {
    for (const descriptor of open) closeDescriptor(descriptor);
    poll.close();
  }
}

function testConnection(poll: EventPoll, open: number[]): void {
  const listener = track(openSocket(AF_INET, SOCK_STREAM), 'socket', open);
  expect('setsockopt', setOption(listener, SOL_SOCKET, SO_REUSEADDR, 1), 0);
  expect('bind', bindSocket(listener, HOST, 0), 0);
  expect('listen', listenSocket(listener, 1), 0);
  expect('accept4 without a connection', acceptConnection(listener), EAGAIN);
  const port = localPort(listener);
  assert(port > 0, `getsockname: port ${port}`);
  const client = track(openSocket(AF_INET, SOCK_STREAM), 'socket', open);
  const connecting = connectSocket(client, HOST, port);
  assert(connecting === 0 || connecting === EINPROGRESS, `connect: result ${connecting}`);
  expectEvent(poll, listener, EPOLLIN);
  const accepted = track(acceptConnection(listener), 'accept4', open);
  const peer = acceptedPeer();
  expect('address of the peer', hostText(peer.host), HOST);
  expect('port of the peer', peer.port, localPort(client));
  testBytes(client, accepted, poll);
  expect('read of a closed descriptor', receive(-1, new NativeMemory(1), 1), EBADF);
  expect('shutdown', shutdownWrite(accepted), 0);
  // On a busy machine, the kernel may deliver a segment on loopback after the call that sent it.
  expectEvent(poll, client, EPOLLIN);
  expect('read after FIN', receive(client, new NativeMemory(1), 1), 0);
  resetConnection(accepted);
  open.splice(open.indexOf(accepted), 1);
  expectEvent(poll, client, EPOLLERR);
  // Linux reports EPIPE and not ECONNRESET if RST follows FIN.
  expect('error of a reset connection', takeSocketError(client), EPIPE);
}

/** A listen socket and a connected socket exchange datagrams. Then the listen socket is closed. */
function testDatagrams(poll: EventPoll, open: number[]): void {
  const slots = new DatagramSlots({ count: 4, slotBytes: 2_048, strideBytes: 2_112 });
  const listener = track(openSocket(AF_INET, SOCK_DGRAM), 'socket', open);
  expect('bind', bindSocket(listener, HOST, 0), 0);
  const client = track(openSocket(AF_INET, SOCK_DGRAM), 'socket', open);
  expect('connect', connectSocket(client, HOST, localPort(listener)), 0);
  const [short, long] = [slots.view(2, 3), slots.view(3, 1_500)];
  short.fill(1);
  long.fill(2);
  slots.prepare(0, 2, short.length);
  slots.prepare(1, 3, long.length);
  expect('recvmmsg without a datagram', slots.receiveFromClients(listener, 0, 2), EAGAIN);
  expect('sendmmsg', slots.sendToEndpoint(client, 2), 2);
  expectEvent(poll, listener, EPOLLIN);
  expect('recvmmsg', slots.receiveFromClients(listener, 0, 3), 2);
  for (const [slot, sent] of [short, long].entries()) {
    const received = slots.view(slot, slots.clientLengthOf(slot));
    assert.deepEqual(received, sent, `recvmmsg: datagram ${slot} is not the sent datagram`);
    expect('address of the client', slots.hostOf(slot), hostOf(HOST));
    expect('port of the client', slots.portOf(slot), localPort(client));
    slots.prepareRecipient(slot, slots.hostOf(slot), slots.portOf(slot));
  }
  slots.prepare(0, 3, long.length);
  slots.prepare(1, 2, short.length);
  expect('sendmmsg with addresses', slots.sendToClients(listener, 2), 2);
  expectEvent(poll, client, EPOLLIN);
  expect('recvmsg', slots.receiveFromEndpoint(client, 0, 1), 1);
  expect('recvmmsg', slots.receiveFromEndpoint(client, 1, 2), 1);
  expect('length by recvmsg', slots.endpointLengthOf(0), long.length);
  expect('length by recvmmsg', slots.endpointLengthOf(1), short.length);
  for (const slot of [0, 1]) slots.prepare(slot, 3, long.length);
  // The transport works without `UDP_SEGMENT`. But if the kernel takes segments, they must arrive as separate datagrams.
  if (slots.sendSegments(client, 2, long.length) >= 0) {
    expectEvent(poll, listener, EPOLLIN);
    expect('recvmmsg of segments', slots.receiveFromClients(listener, 0, 2), 2);
    expect('length of a segment', slots.clientLengthOf(1), long.length);
  }
  expect('dropped datagrams', countDroppedDatagrams(listener), 0);
  closeDescriptor(listener);
  open.splice(open.indexOf(listener), 1);
  expect('sendmsg', slots.sendToEndpoint(client, 1), 1);
  expectEvent(poll, client, EPOLLERR);
  expect('recvmsg after an ICMP error', slots.receiveFromEndpoint(client, 0, 1), ECONNREFUSED);
}

function testBytes(from: number, to: number, poll: EventPoll): void {
  const [sent, received] = [new NativeMemory(4_096), new NativeMemory(4_096)];
  sent.bytes.forEach((_, index) => {
    sent.bytes[index] = (index * 31) & 255;
  });
  expect('read without data', receive(to, received, 4_096), EAGAIN);
  expect('sendmsg', transmitRange(from, sent, 100, 3_000), 3_000);
  expectEvent(poll, to, EPOLLIN);
  expect('read', receive(to, received, 4_096), 3_000);
  assert.deepEqual(received.bytes.subarray(0, 3_000), sent.bytes.subarray(100, 3_100), 'read: other bytes than sent');
  expect('write', transmit(from, sent, 1), 1);
  expect('SIOCOUTQ', unacknowledgedSequence(from) <= 3_001, true);
  expectEvent(poll, to, EPOLLIN);
  expect('read', receive(to, received, 4_096), 1);
}

/** Waits until the socket has one of the events. */
function expectEvent(poll: EventPoll, descriptor: number, events: number): void {
  expect('epoll_ctl', poll.add(descriptor, events, GENERATION), 0);
  expect('epoll_wait', poll.wait(WAIT_MS), 1);
  expect('descriptor of the event', poll.descriptorAt(0), descriptor);
  expect('generation of the event', poll.generationAt(0), GENERATION);
  assert((poll.eventsAt(0) & events) !== 0, `epoll_wait: events ${poll.eventsAt(0)}`);
  expect('epoll_ctl', poll.delete(descriptor), 0);
}

function track(descriptor: number, call: string, open: number[]): number {
  assert(descriptor >= 0, `${call}: result ${descriptor}`);
  open.push(descriptor);
  return descriptor;
}

function expect<T>(call: string, result: T, expected: T): void {
  assert(result === expected, `${call}: result ${result}, expected ${expected}`);
}
