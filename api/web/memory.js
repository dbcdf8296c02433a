// What a page remembers for its tab, also after a reload. Where the browser blocks storage,
// it is remembered until the visitor leaves the page.

const held = new Map();

export function remember(name, text) {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    held.set(name, text);
  }
}

// recall returns what was remembered, or an empty string.
export function recall(name) {
  try {
    return held.get(name) ?? sessionStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

export function forget(name) {
  held.delete(name);
  try {
    sessionStorage.removeItem(name);
  } catch {} // there is nothing in it
}
