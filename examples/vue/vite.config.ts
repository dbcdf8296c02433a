import vue from "@vitejs/plugin-vue";
import { defineConfig } from "vite";

export default defineConfig({
  plugins: [vue({ template: { compilerOptions: { isCustomElement: (tag) => tag === "mailgate-countdown" } } })],
  server: { proxy: { "/send": "http://127.0.0.1:3000" } }, // a back end of another example
});
