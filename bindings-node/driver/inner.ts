/** What the integrations use of the driver, and users do not see. */
export { headerOf } from "./plan.js";
export { metered, varied } from "./policy.js";
export { pricedUsage } from "./prices.js";
