// Program `other-endpoint-process.ts HOST PORT`: the endpoint of the other tenant, a TCP echo server. Prints `listening`.
import { echoServer } from '@weir/testkit';

const [host = '', port = ''] = process.argv.slice(2);
await echoServer({ host, port: Number(port) });
console.log('listening');
