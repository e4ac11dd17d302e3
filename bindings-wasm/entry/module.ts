/** The compiled module of the inlined bytes. */
import inlined from "../gen/inlined.js";

export function module(): WebAssembly.Module {
  const text = atob(inlined);
  const bytes = new Uint8Array(text.length);
  // Not `Uint8Array.from(text, ...)`: that iterates, and is ten times slower; a page would stutter.
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = text.charCodeAt(i);
  return new WebAssembly.Module(bytes);
}
