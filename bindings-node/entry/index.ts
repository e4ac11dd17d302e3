/** reprieve for Node. */
export * from "../driver/index.js";
export { engine } from "./auto.js";
