// The entry point of a worker thread.
import { chooseTcpTransport, chooseUdpTransport } from './transport/choose-transport.ts';
import { runWorker } from './worker/run-worker.ts';

runWorker(await chooseTcpTransport(), await chooseUdpTransport());
