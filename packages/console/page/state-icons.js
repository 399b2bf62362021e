// Icons for states. An icon differs in shape and colour and stands next to a word, because some users cannot distinguish colours.
import { element, svg } from './dom.js';

const SHAPES = {
  ok: () => svg('circle', { cx: 6, cy: 6, r: 5, class: 'fill' }),
  pending: () => svg('path', { d: 'M6 1a5 5 0 1 1 0 10A5 5 0 0 1 6 1Zm0 0v10', class: 'line' }),
  error: () => svg('path', { d: 'M2 2l8 8M10 2l-8 8', class: 'line heavy' }),
  suspended: () => svg('path', { d: 'M3 1.5v9M9 1.5v9', class: 'line heavy' }),
};

const ICON_BY_STATE = {
  Programmed: 'ok',
  Serving: 'ok',
  Pending: 'pending',
  Draining: 'pending',
  Refused: 'error',
  Silent: 'error',
  Stray: 'error',
  error: 'error',
  warning: 'pending',
  Suspended: 'suspended',
};

/** Creates the icon of a state, followed by `text`. */
export function stateIcon(state, text = state) {
  const icon = ICON_BY_STATE[state] ?? 'pending';
  const shape = svg('svg', { viewBox: '0 0 12 12', width: 12, height: 12, 'aria-hidden': 'true' }, SHAPES[icon]());
  return element('span', { class: `state state-${icon}` }, shape, text);
}
