/** `setImmediate`: after everything that is due now. */
const { port1, port2 } = new MessageChannel();
const due = [];
port1.onmessage = () => due.shift()();

globalThis.setImmediate = (body) => {
  due.push(body);
  port2.postMessage(null);
};
