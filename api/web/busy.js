// Buttons that do one thing at a time. They are not disabled meanwhile, since they would
// lose the focus: a second click just does nothing.

const works = new WeakMap(); // what each is at: work that it was freed of does not free it again

export const isBusy = (button) => button.getAttribute("aria-busy") === "true";

// busy does the work unless the button is at some. isHeld says whether something else holds
// the button when the work is done, and lets it go itself.
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

// free lets a button go whose work is of no interest any more.
export function free(button) {
  works.delete(button);
  button.removeAttribute("aria-busy");
  button.removeAttribute("aria-disabled");
}
