// The entry of a worker thread.
import { chooseTcpTransport } from './tcp/choose-transport.ts';
import { chooseUdpTransport } from './udp/choose-udp-transport.ts';
import { runWorker } from './worker/run-worker.ts';

runWorker(await chooseTcpTransport(), await chooseUdpTransport());
