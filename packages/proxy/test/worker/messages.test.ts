import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { MessageBatcher } from '../../src/worker/messages.ts';

describe('MessageBatcher', () => {
  test('sends the first message at once and the others of the turn as one list, in order', () => {
    const { batcher, sent, endTurn } = createBatcher();
    for (const message of ['a', 'b', 'c']) batcher.add(message);
    assert.deepEqual(sent, [['a']]);
    endTurn();
    assert.deepEqual(sent, [['a'], ['b', 'c']]);
    batcher.add('d');
    assert.deepEqual(sent.at(-1), ['d'], 'the next turn begins with a single message');
    endTurn();
    assert.equal(sent.length, 3, 'an empty list is not sent');
  });

  test('sends the pending messages before an urgent one on flush', () => {
    const { batcher, sent } = createBatcher();
    for (const message of ['a', 'b', 'urgent']) batcher.add(message);
    batcher.flush();
    assert.deepEqual(sent, [['a'], ['b', 'urgent']]);
  });

  test('limits the size of a list', () => {
    const { batcher, sent, endTurn } = createBatcher();
    const messages = Array.from({ length: 1_000 }, (_, index) => String(index));
    for (const message of messages) batcher.add(message);
    endTurn();
    assert.deepEqual(sent.flat(), messages);
    assert.ok(sent.length > 4 && sent.every(({ length }) => length <= 200), String(sent.length));
  });
});

function createBatcher(): { batcher: MessageBatcher<string>; sent: (readonly string[])[]; endTurn(): void } {
  const sent: (readonly string[])[] = [];
  let flush: (() => void) | undefined;
  const batcher = new MessageBatcher<string>(
    (list) => sent.push(list),
    (callback) => {
      flush = callback;
    },
  );
  return { batcher, sent, endTurn: () => flush?.() };
}
