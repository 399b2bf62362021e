// A page in a real browser, by the DevTools protocol: enough to press keys, ask the document, and look at it.
import { writeFile } from 'node:fs/promises';
import { eventually, programPath, spawnProcess, temporaryDirectory } from '@weir/testkit';

export interface Browser extends AsyncDisposable {
  open(url: string): Promise<Page>;
}

export interface Page {
  /** The value of an expression in the page, which may be a promise. */
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asks for
  evaluate(expression: string): Promise<any>;
  /** Tried until the expression is true. */
  until(expression: string): Promise<void>;
  /** Typed into whatever has the focus. */
  type(text: string): Promise<void>;
  press(key: 'Enter' | 'Tab'): Promise<void>;
  emulateScreen(options: { readonly width: number; readonly scheme: 'light' | 'dark' }): Promise<void>;
  screenshot(path: string): Promise<void>;
}

type Send = (method: string, params?: object, sessionId?: string) => Promise<Record<string, unknown>>;

export async function startBrowser(): Promise<Browser> {
  const directory = temporaryDirectory('browser');
  const process = await spawnProcess({
    name: 'chromium',
    command: programPath('chromium'),
    args: [
      '--headless=new',
      '--no-sandbox',
      '--disable-gpu',
      '--remote-debugging-port=0',
      `--user-data-dir=${directory.path}`,
    ],
    readyWhen: /DevTools listening on ws:\S+/,
  });
  const { send, close } = await connect(/DevTools listening on (ws:\S+)/.exec(process.output())?.[1] ?? '');
  return {
    async open(url) {
      const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
      const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
      const page = pageOf((method, params) => send(method, params, String(sessionId)));
      await send('Page.enable', {}, String(sessionId));
      await send('Page.navigate', { url }, String(sessionId));
      await page.until('document.readyState === "complete" && location.href !== "about:blank"');
      return page;
    },
    async [Symbol.asyncDispose]() {
      close();
      await process.stop('SIGKILL');
      await directory.close();
    },
  };
}

function pageOf(send: Send): Page {
  const evaluate = async (expression: string): Promise<unknown> => {
    const { result, exceptionDetails } = await send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
    return (result as { value?: unknown }).value;
  };
  return {
    evaluate,
    until: (expression) =>
      eventually(async () => {
        if ((await evaluate(expression)) !== true) throw new Error(`not yet: ${expression}`);
      }),
    type: async (text) => void (await send('Input.insertText', { text })),
    async press(key) {
      const text = key === 'Enter' ? '\r' : '\t';
      const windowsVirtualKeyCode = text.charCodeAt(0);
      await send('Input.dispatchKeyEvent', { type: 'keyDown', key, text, windowsVirtualKeyCode });
      await send('Input.dispatchKeyEvent', { type: 'keyUp', key, windowsVirtualKeyCode });
    },
    async emulateScreen({ width, scheme }) {
      await send('Emulation.setDeviceMetricsOverride', { width, height: 800, deviceScaleFactor: 1, mobile: false });
      await send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
    },
    async screenshot(path) {
      const { data } = await send('Page.captureScreenshot', { captureBeyondViewport: true });
      await writeFile(path, Buffer.from(String(data), 'base64'));
    },
  };
}

interface Message {
  readonly id?: number;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly message: string };
}

async function connect(url: string): Promise<{ readonly send: Send; close(): void }> {
  const socket = new WebSocket(url);
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>();
  const opened = Promise.withResolvers<void>();
  let last = 0;
  socket.addEventListener('open', () => opened.resolve());
  socket.addEventListener('error', () => opened.reject(new Error('the browser does not answer')));
  socket.addEventListener('message', ({ data }) => {
    const { id = 0, result = {}, error } = JSON.parse(String(data)) as Message;
    if (error === undefined) waiting.get(id)?.resolve(result);
    else waiting.get(id)?.reject(new Error(error.message));
    waiting.delete(id);
  });
  await opened.promise;
  return {
    send(method, params = {}, sessionId) {
      last += 1;
      const answer = Promise.withResolvers<Record<string, unknown>>();
      waiting.set(last, answer);
      socket.send(JSON.stringify({ id: last, method, params, sessionId }));
      return answer.promise;
    },
    close: () => socket.close(),
  };
}
