// Vue knows the element, and what is wrong with it. Compiled, never run.
import type {} from "../vue.js";
import type { GlobalComponents } from "vue";

type Props = InstanceType<GlobalComponents["mailgate-countdown"]>["$props"];
export const right: Props = { for: "resend", waitMs: 1000, limits: [], class: "small", onMailgateTick: (event) => event.detail.seconds.toFixed() };
// @ts-expect-error a wait is a number or a text
export const wrong: Props = { waitMs: {} };
