// Buttons that do one thing at a time. They are not disabled meanwhile, as that would take
// the focus away: a second click does nothing.

const works = new WeakMap(); // the current work of each; earlier work does not free it

export const isBusy = (button) => button.getAttribute("aria-busy") === "true";

// busy does the work unless the button is busy. isHeld says whether something else holds the
// button when the work is done, and releases it later.
export async function busy(button, work, isHeld = () => false) {
  if (isBusy(button)) {
    return;
  }
  const mine = {};
  works.set(button, mine);
  button.setAttribute("aria-busy", "true");
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    if (works.get(button) === mine) {
      works.delete(button);
      button.removeAttribute("aria-busy");
      if (!isHeld()) {
        button.removeAttribute("aria-disabled");
      }
    }
  }
}

// free releases a button whose work no longer matters.
export function free(button) {
  works.delete(button);
  button.removeAttribute("aria-busy");
  button.removeAttribute("aria-disabled");
}
