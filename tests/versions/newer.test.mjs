/** Wrapped clients of a package that asks for a newer Node than the tests may have. */
import * as openai from "openai-7";

import { suite } from "../clients/wrap/suite.mjs";

await suite("native", { openai });
