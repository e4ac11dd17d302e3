/** What the integrations use of the driver, and users do not see. */
export { metered, varied } from "./policy.js";
export { pricedUsage } from "./prices.js";
