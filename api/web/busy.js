// Buttons that do one thing at a time. They are not disabled meanwhile, as that would take
// the focus away: a second click does nothing. If the work takes longer than 300 ms, the button
// shows its data-busy.

const works = new WeakMap(); // the current work of each, with the text to restore; earlier work does not free it

export const isBusy = (button) => button.getAttribute("aria-busy") === "true";

// busy does the work unless the button is busy. isHeld says whether something else holds the
// button when the work is done, and releases it later.
export async function busy(button, work, isHeld = () => false) {
  if (isBusy(button)) {
    return;
  }
  const { textContent: text, dataset } = button;
  const mine = dataset.busy ? { text, timer: setTimeout(() => { button.textContent = dataset.busy; }, 300) } : {};
  works.set(button, mine);
  button.setAttribute("aria-busy", "true");
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    if (works.get(button) === mine) {
      free(button, isHeld());
    }
  }
}

// free releases a button whose work is done or no longer matters.
export function free(button, isHeld = false) {
  const { text, timer } = works.get(button) ?? {};
  works.delete(button);
  clearTimeout(timer);
  if (text) {
    button.textContent = text;
  }
  button.removeAttribute("aria-busy");
  if (!isHeld) {
    button.removeAttribute("aria-disabled");
  }
}
