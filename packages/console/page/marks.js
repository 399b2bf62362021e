// States are told by word and shape; colour only repeats them.
import { el, svg } from './dom.js';

const SHAPES = {
  good: () => svg('circle', { cx: 6, cy: 6, r: 5, class: 'fill' }),
  wait: () => svg('path', { d: 'M6 1a5 5 0 1 1 0 10A5 5 0 0 1 6 1Zm0 0v10', class: 'line' }),
  bad: () => svg('path', { d: 'M2 2l8 8M10 2l-8 8', class: 'line heavy' }),
  stop: () => svg('path', { d: 'M3 1.5v9M9 1.5v9', class: 'line heavy' }),
};

const KINDS = {
  Programmed: 'good',
  Serving: 'good',
  Pending: 'wait',
  Draining: 'wait',
  Refused: 'bad',
  Silent: 'bad',
  Stray: 'bad',
  error: 'bad',
  warning: 'wait',
  Suspended: 'stop',
};

/** The word of a state behind its shape. */
export function stateMark(state, text = state) {
  const kind = KINDS[state] ?? 'wait';
  const shape = svg('svg', { viewBox: '0 0 12 12', width: 12, height: 12, 'aria-hidden': 'true' }, SHAPES[kind]());
  return el('span', { class: `state state-${kind}` }, shape, text);
}
