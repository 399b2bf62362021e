// Tests gRPC (@grpc/grpc-js) through a proxy: the four kinds of methods, deadlines, metadata, statuses and the errors of the proxy.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import {
  Client,
  type ClientDuplexStream,
  type ClientReadableStream,
  credentials,
  type handleBidiStreamingCall,
  type handleClientStreamingCall,
  type handleServerStreamingCall,
  type handleUnaryCall,
  Metadata,
  type MethodDefinition,
  Server,
  ServerCredentials,
  type ServiceError,
  type StatusObject,
  status,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js';
import type { Endpoint } from '@weir/model';
import { eventually, freePort } from '@weir/testkit';
import { TRUSTING_CLIENT, terminatingTls } from '../../fixtures/certificates.ts';
import { PORT } from '../../fixtures/listen-address.ts';
import type { TestService } from '../../fixtures/tables.ts';
import { startWorkerInTest, type WorkerInTest } from '../../fixtures/worker-in-test.ts';

const text = (value: string): Buffer => Buffer.from(value);
const identity = (value: Buffer): Buffer => value;

function method(name: string, requestStream: boolean, responseStream: boolean): MethodDefinition<Buffer, Buffer> {
  return {
    path: `/test.Echo/${name}`,
    requestStream,
    responseStream,
    requestSerialize: identity,
    requestDeserialize: identity,
    responseSerialize: identity,
    responseDeserialize: identity,
  };
}

const ECHO = {
  unary: method('Unary', false, false),
  fromServer: method('FromServer', false, true),
  fromClient: method('FromClient', true, false),
  both: method('Both', true, true),
};

interface EchoHandlers {
  readonly unary?: handleUnaryCall<Buffer, Buffer>;
  readonly fromServer?: handleServerStreamingCall<Buffer, Buffer>;
  readonly fromClient?: handleClientStreamingCall<Buffer, Buffer>;
  readonly both?: handleBidiStreamingCall<Buffer, Buffer>;
}

async function grpcEndpoint(context: TestContext, handlers: EchoHandlers): Promise<Endpoint> {
  const server = new Server();
  server.addService(ECHO, { ...handlers } as UntypedServiceImplementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  context.after(() => server.forceShutdown());
  return { address: '127.0.0.1', port };
}

const grpcService = (
  endpoints: readonly Endpoint[],
  over: Pick<TestService, 'certificate' | 'settings'> = {},
): TestService => ({
  name: 'web',
  port: PORT,
  endpoints,
  ...over,
  settings: { httpPorts: [PORT], http2Ports: [PORT], ...over.settings },
});

async function serve(
  context: TestContext,
  endpoints: readonly Endpoint[],
  over: Pick<TestService, 'certificate' | 'settings'> = {},
): Promise<{ readonly worker: WorkerInTest; readonly client: Client }> {
  const worker = await startWorkerInTest(grpcService(endpoints, over));
  const client = new Client(`${worker.host}:${worker.port}`, credentials.createInsecure());
  context.after(() => {
    client.close();
    worker[Symbol.dispose]();
  });
  return { worker, client };
}

interface Reply {
  readonly value: Buffer | undefined;
  readonly error: ServiceError | null;
  readonly status: StatusObject;
}

function callUnary(
  client: Client,
  value: Buffer,
  options: { deadline?: number; metadata?: Metadata } = {},
): Promise<Reply> {
  const { deadline = Date.now() + 10_000, metadata = new Metadata() } = options;
  return new Promise((resolve) => {
    let reply: { value: Buffer | undefined; error: ServiceError | null } | undefined;
    const { path, requestSerialize, responseDeserialize } = ECHO.unary;
    const call = client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      value,
      metadata,
      { deadline },
      (error, received) => {
        reply = { value: received, error };
      },
    );
    call.on('status', (received) =>
      setImmediate(() => resolve({ value: undefined, error: null, ...reply, status: received })),
    );
  });
}

const bothWays = (client: Client): ClientDuplexStream<Buffer, Buffer> =>
  client.makeBidiStreamRequest(ECHO.both.path, identity, identity);

test('relays unary calls with metadata, trailing metadata and a status', async (context) => {
  const at = await grpcEndpoint(context, {
    unary: (call, callback) => {
      const [fail] = call.metadata.get('x-fail');
      const initial = new Metadata();
      initial.set('x-seen', String(call.metadata.get('x-sent')[0]));
      initial.set('bytes-bin', Buffer.from([0, 255, 13, 10]));
      call.sendMetadata(initial);
      const trailing = new Metadata();
      trailing.set('x-trailing', 'end');
      if (fail !== undefined) callback({ code: status.FAILED_PRECONDITION, details: 'not now: ä', metadata: trailing });
      else callback(null, call.request, trailing);
    },
  });
  const { client } = await serve(context, [at]);
  const metadata = new Metadata();
  metadata.set('x-sent', 'a value');
  const large = Buffer.alloc(2_000_000, 'x');
  const [small, big] = await Promise.all([
    callUnary(client, text('hello'), { metadata }),
    callUnary(client, large, { metadata }),
  ]);
  assert.equal(small.value?.toString(), 'hello');
  assert.ok(big.value?.equals(large));
  assert.equal(small.status.code, status.OK);
  assert.deepEqual(small.status.metadata.get('x-trailing'), ['end']);
  metadata.set('x-fail', 'yes');
  const failed = await callUnary(client, text('hello'), { metadata });
  assert.equal(failed.error?.code, status.FAILED_PRECONDITION);
  assert.equal(failed.error.details, 'not now: ä');
  assert.deepEqual(failed.error.metadata.get('x-trailing'), ['end']);
});

test('relays streams of the server, of the client, and of both at the same time', async (context) => {
  const at = await grpcEndpoint(context, {
    fromServer: (call) => {
      for (let index = 0; index < 1_000; index += 1) call.write(text(`${call.request} ${index}`));
      call.end();
    },
    fromClient: (call, callback) => {
      void (async () => {
        let bytes = 0;
        for await (const part of call) bytes += (part as Buffer).length;
        callback(null, text(String(bytes)));
      })();
    },
    both: (call) => {
      call.on('data', (part: Buffer) => call.write(part));
      call.on('end', () => call.end());
    },
  });
  const { client } = await serve(context, [at]);

  const fromServer: ClientReadableStream<Buffer> = client.makeServerStreamRequest(
    ECHO.fromServer.path,
    identity,
    identity,
    text('item'),
  );
  const items = (await fromServer.toArray()) as Buffer[];
  assert.equal(items.length, 1_000);
  assert.equal(items.at(-1)?.toString(), 'item 999');

  const sum = await new Promise<string>((resolve, reject) => {
    const call = client.makeClientStreamRequest<Buffer, Buffer>(
      ECHO.fromClient.path,
      identity,
      identity,
      (error, value) => (error === null ? resolve(String(value)) : reject(error)),
    );
    for (let index = 0; index < 100; index += 1) call.write(Buffer.alloc(30_000));
    call.end();
  });
  assert.equal(sum, '3000000');

  // Each message is sent when the answer to the message before has come, so nothing may be held back.
  const call = bothWays(client);
  for (let index = 0; index < 50; index += 1) {
    call.write(text(`message ${index}`));
    const [received] = (await once(call, 'data')) as [Buffer];
    assert.equal(received.toString(), `message ${index}`);
  }
  const end = once(call, 'status');
  call.end();
  call.resume();
  const [{ code }] = (await end) as [StatusObject];
  assert.equal(code, status.OK);
});

test('relays many calls of one client to all endpoints', async (context) => {
  const counts = [0, 0, 0];
  const endpoints = await Promise.all(
    counts.map((_, index) =>
      grpcEndpoint(context, {
        unary: ({ request }, callback) => {
          counts[index] = (counts[index] ?? 0) + 1;
          callback(null, request);
        },
      }),
    ),
  );
  const { client } = await serve(context, endpoints);
  const replies = await Promise.all(Array.from({ length: 300 }, (_, index) => callUnary(client, text(String(index)))));
  for (const [index, { value }] of replies.entries()) assert.equal(value?.toString(), String(index));
  for (const count of counts) assert.ok(count > 50, counts.join());
});

test('passes on the deadline, and resets the call of the endpoint when it has passed or the client cancels', async (context) => {
  const cancelled: string[] = [];
  const at = await grpcEndpoint(context, {
    unary: (call) => {
      assert.ok(Number(call.getDeadline()) < Date.now() + 60_000);
      call.on('cancelled', () => cancelled.push(call.request.toString()));
    },
    both: (call) => {
      call.on('cancelled', () => cancelled.push('stream'));
      call.write(text('open'));
    },
  });
  const { client } = await serve(context, [at]);
  const late = await callUnary(client, text('late'), { deadline: Date.now() + 300 });
  assert.equal(late.error?.code, status.DEADLINE_EXCEEDED);
  await eventually(() => assert.deepEqual(cancelled, ['late']));
  const call = bothWays(client);
  call.on('error', () => undefined);
  await once(call, 'data');
  call.cancel();
  await eventually(() => assert.deepEqual(cancelled, ['late', 'stream']));
});

test('answers with errors of gRPC', async (context) => {
  let received = 0;
  const silent = await grpcEndpoint(context, {
    unary: () => {
      received += 1;
    },
  });
  const none = await serve(context, [silent]);
  const connected = await callUnary(none.client, text('a'), { deadline: Date.now() + 300 });
  assert.equal(connected.error?.code, status.DEADLINE_EXCEEDED);
  none.worker.serve(grpcService([]));
  const unavailable = await callUnary(none.client, text('a'));
  assert.equal(unavailable.error?.code, status.UNAVAILABLE);
  assert.equal(unavailable.error.details, 'No endpoint of the service is ready.');
  const refused = await serve(context, [{ address: '127.0.0.1', port: await freePort() }]);
  assert.equal((await callUnary(refused.client, text('a'))).error?.code, status.UNAVAILABLE);
  const timeout = await serve(context, [silent], { settings: { requestTimeoutMs: 1_000 } });
  const late = callUnary(timeout.client, text('a'));
  await eventually(() => assert.equal(received, 2));
  timeout.worker.tick(2);
  const { error } = await late;
  assert.equal(error?.code, status.DEADLINE_EXCEEDED);
  assert.equal(error.details, 'The service did not answer in time.');
  const other = await serve(context, [silent], { settings: { hosts: ['other.example'] } });
  assert.equal((await callUnary(other.client, text('a'))).error?.code, status.UNIMPLEMENTED);
});

test('relays calls of a client with TLS', async (context) => {
  const at = await grpcEndpoint(context, {
    unary: ({ request }, callback) => callback(null, request),
  });
  const { worker } = await serve(context, [at], terminatingTls({ alpn: ['h2', 'http/1.1'] }));
  const client = new Client(
    `${worker.host}:${worker.port}`,
    credentials.createSsl(Buffer.from(String(TRUSTING_CLIENT.ca))),
    { 'grpc.ssl_target_name_override': String(TRUSTING_CLIENT.servername) },
  );
  context.after(() => client.close());
  const reply = await callUnary(client, text('secret'));
  assert.equal(reply.value?.toString(), 'secret');
});
