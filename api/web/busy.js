// Buttons that do one thing at a time. They are not disabled meanwhile, since they would
// lose the focus: a second click just does nothing.

export const isBusy = (button) => button.getAttribute("aria-busy") === "true";

// busy does the work unless the button is at some. isHeld says whether something else holds
// the button when the work is done, and lets it go itself.
export async function busy(button, work, isHeld = () => false) {
  if (isBusy(button)) {
    return;
  }
  button.setAttribute("aria-busy", "true");
  button.setAttribute("aria-disabled", "true");
  try {
    await work();
  } finally {
    button.removeAttribute("aria-busy");
    if (!isHeld()) {
      button.removeAttribute("aria-disabled");
    }
  }
}

// free lets a button go whose work is of no interest any more.
export function free(button) {
  button.removeAttribute("aria-busy");
  button.removeAttribute("aria-disabled");
}
