// tableRow is one row of a table; classes are those of its cells.
export function tableRow(texts, classes = []) {
  const row = document.createElement("tr");
  row.append(...texts.map((text, i) => Object.assign(document.createElement("td"), { textContent: text, className: classes[i] ?? "" })));
  return row;
}
