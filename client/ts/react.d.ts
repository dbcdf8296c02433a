// The element <mailgate-countdown> in React 19's JSX. Load it once, anywhere in the program:
//
//     import type {} from "mailgate/react";
import type { DetailedHTMLProps, HTMLAttributes } from "react";
import type { MailgateAttributes, MailgateCountdown } from "./dist/countdown.js";

declare module "react" {
  namespace JSX {
    interface IntrinsicElements {
      "mailgate-countdown": MailgateAttributes & DetailedHTMLProps<HTMLAttributes<MailgateCountdown>, MailgateCountdown>;
    }
  }
}
