// What the C library's malloc knows of itself, asked through the inspector: the sources of the proxy know nothing of it.
import { readFileSync, rmSync } from 'node:fs';
import type { Inspector } from './inspector.ts';

/** Of all arenas, and of what is too large for one. */
export type MallocBytes = { readonly used: number; readonly free: number };

/** By way of a file at `path`, which is removed. */
export async function readMallocBytes(inspector: Inspector, path: string): Promise<MallocBytes> {
  await inspector.call('Runtime.evaluate', { expression: mallocInfoExpression(path) }).catch((cause: unknown) => {
    throw new Error('the proxy could not ask its malloc; use Node 26 (with node:ffi) on a Linux with glibc', { cause });
  });
  const text = readFileSync(path, 'utf8');
  rmSync(path);
  return parseMallocInfo(text);
}

const mallocInfoExpression = (path: string): string => `(() => {
  const { functions: libc } = process.getBuiltinModule('node:ffi').dlopen('libc.so.6', {
    fopen: { return: 'pointer', arguments: ['string', 'string'] },
    fclose: { return: 'i32', arguments: ['pointer'] },
    malloc_info: { return: 'i32', arguments: ['i32', 'pointer'] },
  });
  const file = libc.fopen(${JSON.stringify(path)}, 'w');
  libc.malloc_info(0, file);
  libc.fclose(file);
})()`;

/** malloc_info(3). What threads keep for themselves (tcache) counts as used. */
export function parseMallocInfo(text: string): MallocBytes {
  const [, sums] = /<\/heap>\n(?!<heap)([\s\S]*)<\/malloc>/.exec(text) ?? [];
  if (sums === undefined) throw new Error(`not what malloc_info writes: ${text.slice(0, 80)}`);
  const size = (tag: string): number => {
    const [, bytes] = new RegExp(`<${tag}[^>]* size="(\\d+)"/>`).exec(sums) ?? [];
    if (bytes === undefined) throw new Error(`malloc_info does not say ${tag}: ${sums.slice(0, 200)}`);
    return Number(bytes);
  };
  const free = size('total type="fast"') + size('total type="rest"');
  return { used: size('system type="current"') - free + size('total type="mmap"'), free };
}
