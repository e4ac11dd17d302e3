/** Wrapped clients of older packages. */
import * as anthropic from "anthropic-0";
import * as openai from "openai-5";

import { suite } from "../clients/wrap/suite.mjs";

await suite("native", { openai, anthropic });
