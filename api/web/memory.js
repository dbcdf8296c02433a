// What a page remembers for its tab, also when it is loaded again. Where the browser lets no
// site store anything, it is remembered until the page is left.

const held = new Map();

export function remember(name, text) {
  try {
    sessionStorage.setItem(name, text);
  } catch {
    held.set(name, text);
  }
}

// recall is what was remembered; empty if nothing was.
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
