// React knows the element, and what is wrong with it. Compiled, never run.
import type {} from "../react.js";

export const right = <mailgate-countdown for="resend" wait-ms={1000} onmailgate-end={(event) => event.detail satisfies null} className="small" />;
// @ts-expect-error a wait is a number or a text
export const wrong = <mailgate-countdown wait-ms={{}} />;
