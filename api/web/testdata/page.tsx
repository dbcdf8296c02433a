// How a page that is typed uses the component.
import { MailgateAttributes, MailgateCountdown, MailgateEvents } from "./mailgate-countdown";

declare global {
  namespace JSX {
    interface IntrinsicElements {
      "mailgate-countdown": MailgateAttributes;
    }
  }
}

const element = document.querySelector("mailgate-countdown")!;
const ended = (event: CustomEvent<null>): void => void event;
const ticked = (event: MailgateEvents["mailgate-tick"]): void => void event.detail.seconds.toFixed();
element.addEventListener("mailgate-end", ended);
element.addEventListener("mailgate-tick", ticked, { passive: true });
element.removeEventListener("mailgate-end", ended);
element.removeEventListener("mailgate-tick", ticked, { capture: false });
element.removeEventListener("click", (event) => event.clientX);
element.waitMs = 60_000;

export const drawn = (answer: { src: string; wait: number } | null) => (
  <mailgate-countdown for="resend" src={answer?.src} wait-ms={answer?.wait} limits={element.limits} onmailgate-end={ended}
    onmailgate-tick={({ detail }) => detail.seconds.toFixed()} />
);

// @ts-expect-error: there is no such attribute
export const wrong = <mailgate-countdown waitms={1} />;

MailgateCountdown.texts.de = { limit: ({ span }) => `Eine Mail je ${span}.`, wait: "Noch {time}.", end: "Es geht wieder." };
