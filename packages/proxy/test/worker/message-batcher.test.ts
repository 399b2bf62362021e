import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessageBatcher } from '../../src/worker/messages.ts';

describe('what is said to a thread', () => {
  test('goes at once when it is alone, and what is said in the same go follows in one message, in order', () => {
    const { outbox, sent, end } = outboxOfTest();
    for (const word of ['a', 'b', 'c']) outbox.add(word);
    assert.deepEqual(sent, [['a']]);
    end();
    assert.deepEqual(sent, [['a'], ['b', 'c']]);
    outbox.add('d');
    assert.deepEqual(sent.at(-1), ['d'], 'the next go begins anew');
    end();
    assert.equal(sent.length, 3, 'nothing is said for nothing');
  });

  test('is not held back by what is urgent and goes before it', () => {
    const { outbox, sent } = outboxOfTest();
    for (const word of ['a', 'b', 'urgent']) outbox.add(word);
    outbox.flush();
    assert.deepEqual(sent, [['a'], ['b', 'urgent']]);
  });

  test('is of bounded size in one message', () => {
    const { outbox, sent, end } = outboxOfTest();
    const words = Array.from({ length: 1_000 }, (_, index) => String(index));
    for (const word of words) outbox.add(word);
    end();
    assert.deepEqual(sent.flat(), words);
    assert.ok(sent.length > 4 && sent.every(({ length }) => length <= 200), String(sent.length));
  });
});

function outboxOfTest(): { outbox: MessageBatcher<string>; sent: (readonly string[])[]; end(): void } {
  const sent: (readonly string[])[] = [];
  let flush: (() => void) | undefined;
  const outbox = new MessageBatcher<string>(
    (said) => sent.push(said),
    (later) => {
      flush = later;
    },
  );
  return { outbox, sent, end: () => flush?.() };
}
