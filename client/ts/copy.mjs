// Copies into the package what it shares with the rest of the repository.
import { copyFileSync } from "node:fs";

copyFileSync("../../api/web/mailgate-countdown.js", "dist/countdown.js");
copyFileSync("../../api/web/mailgate-countdown.d.ts", "dist/countdown.d.ts");
copyFileSync("../../LICENSE", "LICENSE");
