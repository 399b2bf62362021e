const SVG = 'http://www.w3.org/2000/svg';

/** Creates an element. Text in `children` is never parsed as markup. An attribute `onNAME` adds an event listener. */
export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children);
  return node;
}

/** Sets the text of `node`. Does not write an equal text, because a write ends text selections and makes screen readers repeat the text. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Returns a function that shows a list of items as the children of `parent`. An item that stays in the list keeps its node, so focus and
 * hover are not lost. `create(item)` returns `{node, update(item)}`.
 */
export function keyedList(parent, keyOf, create) {
  const views = new Map();
  return (items) => {
    const keys = new Set();
    let next = parent.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      keys.add(key);
      let view = views.get(key);
      if (view === undefined) {
        view = create(item);
        views.set(key, view);
      }
      view.update(item);
      if (view.node === next) next = next.nextElementSibling;
      else parent.insertBefore(view.node, next);
    }
    for (const [key, view] of views) {
      if (keys.has(key)) continue;
      view.node.remove();
      views.delete(key);
    }
  };
}

/** Deletes all entries of `map` whose key is not in `keys`, because a page may stay open for weeks. */
export function keepOnly(map, keys) {
  for (const key of map.keys()) if (!keys.has(key)) map.delete(key);
}

/** Sets the line that stands in place of the empty list `name`. An empty text hides the line. */
export function setEmptyMessage(name, text) {
  const line = document.querySelector(`[data-empty="${name}"]`);
  line.hidden = text === '';
  setText(line, text);
}
