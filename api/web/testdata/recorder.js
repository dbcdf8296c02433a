// Records what the component does.
window.seen = { events: [], said: [], clicks: 0, submits: 0, fetches: 0 };

for (const name of ["start", "tick", "end"]) {
  document.addEventListener(`mailgate-${name}`, ({ detail }) => {
    const { limit, waitMs, seconds } = detail ?? {};
    seen.events.push([name, limit, waitMs, seconds].filter((part) => part != null).join(" "));
  });
}
document.addEventListener("securitypolicyviolation", (event) => event.blockedURI.endsWith("/favicon.ico") || console.error(`violates ${event.violatedDirective}`));
document.addEventListener("submit", (event) => {
  event.preventDefault();
  seen.submits++;
});
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("resend")?.addEventListener("click", () => seen.clicks++);
});

const ask = window.fetch;
window.fetch = (...call) => {
  seen.fetches++;
  return ask(...call);
};

// What the live region says, from its first word on.
window.listen = (element) => {
  const region = element.shadowRoot.querySelector("[role=status]");
  const note = () => region.textContent && seen.said.push(region.textContent);
  note();
  new MutationObserver(note).observe(region, { childList: true, characterData: true, subtree: true });
};
customElements.whenDefined("mailgate-countdown").then(() => {
  document.querySelectorAll("mailgate-countdown").forEach(listen);
});

// look describes the page in one object.
window.look = () => {
  const element = document.querySelector("mailgate-countdown");
  const button = element.button;
  return {
    text: element.shadowRoot.querySelector("[part=text]").textContent.trim(),
    held: button?.getAttribute("aria-disabled") === "true",
    disabled: button?.disabled ?? false,
    waiting: element.waiting && element.hasAttribute("waiting"),
    focused: document.activeElement === button,
    ...seen,
  };
};
