// The element <mailgate-countdown> in Vue 3's templates. Load it once, anywhere in the program:
//
//     import type {} from "mailgate/vue";
import type { HTMLAttributes, PublicProps } from "vue";
import type { MailgateAttributes, MailgateCountdown, MailgateEvents } from "./dist/countdown.js";

// Templates are checked with the names of properties.
type Camel<Name> = Name extends `${infer Head}-${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : Name;
type Attributes = { [Name in keyof MailgateAttributes as Camel<Name>]: MailgateAttributes[Name] };
type Events = { [Name in keyof MailgateEvents & `mailgate-${string}` as `on${Capitalize<Camel<Name>>}`]?: (event: MailgateEvents[Name]) => void };

declare module "vue" {
  interface GlobalComponents {
    "mailgate-countdown": new () => MailgateCountdown & { $props: Attributes & Events & HTMLAttributes & PublicProps };
  }
}
