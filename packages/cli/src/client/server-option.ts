import { Option } from 'commander';
import type { Terminal } from '../terminal.ts';
import { ConsoleClient } from './console-client.ts';

export const DEFAULT_SERVER = 'http://127.0.0.1:8686';

export interface ServerOption {
  readonly server?: string;
}

export function serverOption(): Option {
  return new Option('--server <url>', `where the console is (WEIR_SERVER; default ${DEFAULT_SERVER})`);
}

/** The flag wins over WEIR_SERVER, which wins over the console of `weir standalone` on this machine. */
export function clientFor(terminal: Terminal, { server }: ServerOption): ConsoleClient {
  return new ConsoleClient(server ?? (terminal.env.WEIR_SERVER || DEFAULT_SERVER));
}
