const SVG = 'http://www.w3.org/2000/svg';

/** An element with attributes and children; text is always text, never markup. */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children);
  return node;
}

/** Sets a text only when it is another one, so that a selection and a screen reader are left in peace. */
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Keeps the children of `parent` in step with a list: what stays keeps its node, and with it focus and hover.
 * `create(item)` returns `{node, update(item)}`.
 */
export function keyedList(parent, keyOf, create) {
  const parts = new Map();
  return (items) => {
    const wanted = new Set();
    let place = parent.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      wanted.add(key);
      let part = parts.get(key);
      if (part === undefined) {
        part = create(item);
        parts.set(key, part);
      }
      part.update(item);
      if (part.node === place) place = place.nextElementSibling;
      else parent.insertBefore(part.node, place);
    }
    for (const [key, part] of parts) {
      if (wanted.has(key)) continue;
      part.node.remove();
      parts.delete(key);
    }
  };
}

/** Takes out of `parts`, a Map, what is not kept by its key: a page stays open for weeks. */
export function forgetOthers(parts, kept) {
  for (const key of parts.keys()) if (!kept.has(key)) parts.delete(key);
}

/** The line that stands in for an empty list, or nothing. */
export function sayEmpty(name, text) {
  const line = document.querySelector(`[data-empty="${name}"]`);
  line.hidden = text === '';
  say(line, text);
}
