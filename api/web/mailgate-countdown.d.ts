/**
 * `<mailgate-countdown>` counts down to the next email, beside the button that requests
 * it. One file, no dependency:
 *
 *     <script type="module" src="/countdown.js"></script>
 *
 *     <button id="resend">Send again</button>
 *     <mailgate-countdown for="resend"></mailgate-countdown>
 *
 * and after each send, with the JSON that mailgate answered (a 200, a 403 or a 429 alike):
 *
 *     document.querySelector("mailgate-countdown").update(answer);
 *
 * From then on it shows "One email a minute. Next in 0:42." and disables the button until
 * the wait is over. It continues after a reload, in other tabs, after sleep and after the
 * back button: it remembers the `countdown` token of the answer and asks the server
 * again. It does not depend on the visitor's clock and never ends early. There is one
 * exception: if the server cannot be reached after a reload, the visitor's clock decides
 * until the server answers. Without a token, or in a hidden page, a wait of many hours
 * follows the browser's monotonic clock, which drifts by 50 ppm, 4 s in a day.
 *
 * Tabs share what they remember. Set the mailbox before each update and whenever the
 * address changes, so that another address does not wait for this one:
 *
 *     countdown.mailbox = form.email.value;
 *
 * A server that renders can say the same in attributes. The page may have been cached,
 * so the button is held until the server has been asked:
 *
 *     <mailgate-countdown for="resend" src="/countdown/TOKEN" wait-ms="60000"
 *       limit="minute" limits='[{"name":"minute","limit":1,"window_ms":60000}]'>
 *
 * The button may also be inside: `<mailgate-countdown><button>…</button></…>`.
 * Without JavaScript it is a button like any other.
 *
 * React 19 and Vue 3 pass what they are given; a new `src` or `wait-ms` is a new answer:
 *
 *     <mailgate-countdown for="resend" src={src} wait-ms={wait} onmailgate-end={done} />
 *     <mailgate-countdown for="resend" :src="src" :wait-ms="wait" @mailgate-end="done" />
 *
 * Before React hydrates the page, a wait may already have marked the element and its button:
 * `suppressHydrationWarning` on both avoids the warning.
 *
 * Content security policy: `script-src` and `connect-src` must allow where the file and
 * the answers come from. Nothing else is needed, no `unsafe-inline` either. A challenge is solved in a worker if
 * `worker-src` allows `blob:`, and otherwise in the page, in small steps. Either needs a secure page: https, or localhost.
 *
 * The held button is marked `aria-disabled="true"`, keeps the focus, and does nothing by
 * mouse, by key or by Enter in its form. It is drawn at half opacity, with no specificity, so
 * that any rule of yours wins. Style it with `button[aria-disabled="true"]`, the text with `mailgate-countdown::part(text)`,
 * `::part(limit)` and `::part(wait)`. It inherits colour and font, and nothing moves.
 *
 * A screen reader hears, politely, when a wait starts, when it ends, and how long it
 * still lasts when the held button is pressed.
 */
export class MailgateCountdown extends HTMLElement {
  /**
   * The texts by language, in lower case, `en` and `zh` built in. The language is that
   * of the nearest `lang` attribute, else the visitor's. Add others before the element
   * is used:
   *
   *     MailgateCountdown.texts.de = {
   *       limit: ({ n, span, plural }) => plural === "one" ? `Eine Mail je ${span}.` : `${n} Mails in ${span} sind verbraucht.`,
   *       wait: "Nächste in {time}.",
   *       end: "Die nächste Mail kann kommen.",
   *     };
   */
  static texts: Record<string, MailgateTexts>;

  /** The id of the button. Without it, the first button inside. Attribute `for`. */
  htmlFor: string | null;
  /** Where to ask how long it still lasts: `/countdown/TOKEN`. Attribute `src`. */
  src: string | null;
  /** How long to wait from now on, in milliseconds. Attribute `wait-ms`. */
  get waitMs(): string | null;
  set waitMs(ms: number | string | null);
  /** The name of the limit that is waited for. Attribute `limit`. */
  limit: string | null;
  /** The limits by name, which the sentence is made from. Attribute `limits`, as JSON. */
  get limits(): MailgateLimit[] | null;
  set limits(limits: MailgateLimit[] | null);
  /** The name under which the wait is stored; `for` if not given. Attribute `name`. */
  name: string | null;
  /**
   * The mailbox that waits: its address, an account number, or anything else unique to it.
   * Only a checksum of it is stored. A new value shows that mailbox's own wait and keeps
   * the previous one for later. Attribute `mailbox`.
   */
  mailbox: string | null;
  /**
   * What a 403 `challenge-required` has as its `challenge`, which `update` sets. The element solves it beside the page,
   * shows how far it is, and holds the button meanwhile. The solution is in `mailgate-solved`, and in a field
   * named `challenge` of the button's form: `<input type="hidden" name="challenge">`. It is the `challenge` of the next send.
   * Attribute `challenge`, as JSON.
   */
  get challenge(): MailgateChallenge | null;
  set challenge(asked: MailgateChallenge | null | undefined);
  /** The URL prefix of a token; `/countdown/` if not given. Attribute `base`. */
  base: string | null;

  // As attributes only: `limit-text`, `wait-text` and `end-text`, and so for the others, replace the language's
  // text, with {time}, {n}, {count}, {unit}, {span} and {plural} filled in.
  // While it waits the element has the attribute `waiting`.

  /** Whether the button is held. */
  readonly waiting: boolean;
  /** Milliseconds until it is not. */
  readonly remaining: number;
  /** The button, if found. */
  readonly button: HTMLElement | null;

  /**
   * Takes mailgate's answer to a send, passed on by the back end as it was, or what the
   * clients' ForCountdown makes of it. Returns false for one without a `wait_ms`, such as a 422
   * `invalid`, which changes nothing.
   *
   * An answer without a `countdown` token may be about another mailbox, so the token at
   * hand is kept only if `retry_at` is the moment that is known. Without a token the
   * server cannot be asked: the countdown is still right, and late rather than early after
   * sleep, but after a reload it follows the visitor's clock.
   *
   * The stored answer to an earlier request under an Idempotency-Key has the wait of its
   * moment. With `replayed: true` added to it the server is asked at once.
   */
  update(answer: unknown): boolean;
  /** Asks the server now. Pages need not call it: the element does whenever there is reason to. */
  refresh(): Promise<void>;
  /** Releases the button and forgets the wait: the mailbox was reset, or there is no `mailbox` and another address was typed. */
  reset(): void;

  addEventListener<K extends keyof MailgateEvents>(
    type: K, listener: (this: MailgateCountdown, event: MailgateEvents[K]) => unknown, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
  removeEventListener<K extends keyof MailgateEvents>(
    type: K, listener: (this: MailgateCountdown, event: MailgateEvents[K]) => unknown, options?: boolean | EventListenerOptions): void;
  removeEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | EventListenerOptions): void;
}

/**
 * The attributes, for typed JSX. Declare the element once; in React 19:
 *
 *     declare module "react" {
 *       namespace JSX {
 *         interface IntrinsicElements {
 *           "mailgate-countdown": MailgateAttributes & DetailedHTMLProps<HTMLAttributes<MailgateCountdown>, MailgateCountdown>;
 *         }
 *       }
 *     }
 */
export type MailgateAttributes = {
  [name in "for" | "name" | "mailbox" | "base" | "src" | "limit" | "limit-text" | "wait-text" | "end-text"]?: string | null | undefined;
} & {
  [event in "mailgate-start" | "mailgate-tick" | "mailgate-end" | "mailgate-solved" | "mailgate-unsolved" as `on${event}`]?: ((event: MailgateEvents[event]) => void) | undefined;
} & { "wait-ms"?: number | string | null | undefined; limits?: MailgateLimit[] | null | undefined; challenge?: MailgateChallenge | null | undefined };

/** All bubble, and leave shadow trees. */
export interface MailgateEvents extends HTMLElementEventMap {
  /** A wait began or changed. */
  "mailgate-start": CustomEvent<{ limit?: string | null; waitMs: number }>;
  /** Another whole second is shown; never 0. */
  "mailgate-tick": CustomEvent<{ seconds: number }>;
  /** The challenge is solved: send again with it. */
  "mailgate-solved": CustomEvent<{ challenge: string }>;
  /** It cannot be solved here: the page is not secure, or this is no challenge. */
  "mailgate-unsolved": CustomEvent<null>;
  /** The next email can be requested. Not sent by reset(). */
  "mailgate-end": CustomEvent<null>;
}

/** The `challenge` of a 403; other members are ignored. */
export interface MailgateChallenge {
  altcha: { algorithm: string; challenge: string; maxnumber: number; salt: string; signature: string };
}

/** One of an answer's `limits`; other members are ignored. */
export interface MailgateLimit {
  name: string;
  limit: number;
  window_ms: number;
}

/** A text with `{name}` for each value, or a function of them. */
export type MailgateText = string | ((values: MailgateValues) => string);

export interface MailgateTexts {
  /** Why: "One email a minute." Left out where the limit is not among `limits`, or is another rule's. */
  limit: MailgateText;
  /** How long: "Next in {time}." The time is 0:42 where it is seen, "42 seconds" where it is said. */
  wait: MailgateText;
  /** The text at the end. */
  end: MailgateText;
  /** While a challenge is solved, {done} of it; when it is; when it cannot be, and why. English if left out. */
  check?: MailgateText;
  checked?: MailgateText;
  unchecked?: MailgateText;
  insecure?: MailgateText;
}

/** All but the time are there only if the limit is among `limits`, and the mailbox's. */
export interface MailgateValues {
  time: string;
  /** How much of a challenge is tried, in percent. */
  done?: string;
  /** How many emails, and the window they count in: 5 in 2 hours is n 5, count 2, unit "hour", span "2 hours". */
  n?: number;
  count?: number;
  unit?: "day" | "hour" | "minute" | "second";
  span?: string;
  /** The plural form of n in the language, as Intl.PluralRules has it. */
  plural?: Intl.LDMLPluralRule;
}

declare global {
  interface HTMLElementTagNameMap {
    "mailgate-countdown": MailgateCountdown;
  }
}
