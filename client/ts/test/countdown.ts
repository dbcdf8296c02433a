// How a typed page uses the countdown. Compiled, never run.
import { MailgateCountdown, type MailgateEvents } from "../dist/countdown.js";

const element = document.querySelector("mailgate-countdown")!;
const ended = (event: CustomEvent<null>): void => void event;
const ticked = (event: MailgateEvents["mailgate-tick"]): void => void event.detail.seconds.toFixed();
element.addEventListener("mailgate-end", ended);
element.addEventListener("mailgate-tick", ticked, { passive: true });
element.removeEventListener("mailgate-tick", ticked, { capture: false });
element.removeEventListener("click", (event) => event.clientX);
element.waitMs = 60_000;
// @ts-expect-error a wait is a number
element.waitMs = {};

MailgateCountdown.texts.de = { limit: ({ span }) => `Eine Mail je ${span}.`, wait: "Noch {time}.", end: "Es geht wieder." };
