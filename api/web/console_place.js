// What the address of the page says behind its #. It stays in the browser's history, so it has hashes of mailboxes, and
// no address of a mailbox or visitor.

const read = () => new URLSearchParams(location.hash.slice(1));

// placed returns what it says of a name, or an empty string.
export const placed = (name) => read().get(name) ?? "";

// place writes what it says of some names; an empty string removes one.
export function place(texts) {
  const all = read();
  for (const [name, text] of Object.entries(texts)) {
    if (text === "") {
      all.delete(name);
    } else {
      all.set(name, text);
    }
  }
  history.replaceState(null, "", `${location.pathname}${all.size === 0 ? "" : "#"}${all}`);
}

export const unplace = () => history.replaceState(null, "", location.pathname);
