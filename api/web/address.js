// writeAddress puts an address into an element. Where it does not fit one line, it breaks
// before the @ or a dot.
export function writeAddress(element, text) {
  element.replaceChildren(...text.split(/(?=[@.])/).flatMap((part, i) => (i > 0 ? [document.createElement("wbr"), part] : [part])));
}
