// writeAddress puts an address into an element. Where it does not fit one line, it breaks before
// the @, else before a dot, but not before its top-level domain.
export function writeAddress(element, text) {
  const [local, ...domain] = text.split(/(?=@)/);
  element.replaceChildren(part(local.split(/(?=\.)/)), part(domain.join("").split(/(?=\.[^.]{4,}\.)/)));
}

function part(pieces) {
  const span = document.createElement("span");
  span.className = "part";
  span.append(...pieces.flatMap((piece, i) => (i > 0 ? [document.createElement("wbr"), piece] : [piece])));
  return span;
}

// writeAddresses puts several into one, with commas.
export function writeAddresses(element, all) {
  element.replaceChildren(...all.flatMap((address, i) => {
    const one = document.createElement("bdi");
    writeAddress(one, address);
    return i > 0 ? [", ", one] : [one];
  }));
}
