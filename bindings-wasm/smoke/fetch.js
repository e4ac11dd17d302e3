/** A worker of an edge runtime. */
import * as reprieve from "reprieve";

import { check } from "./check.js";

export default {
  async fetch() {
    return new Response(await check(reprieve));
  },
};
