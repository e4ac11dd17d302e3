/** Reads what a wasm module is made of. */

const SECTIONS = [
  "custom",
  "types",
  "imports",
  "functions",
  "tables",
  "memory",
  "globals",
  "exports",
  "start",
  "elements",
  "code",
  "data",
  "data count",
];

/** The sections with their bytes, in order. */
export function sections(module) {
  const reader = new Reader(module, 8);
  const found = [];
  while (reader.at < module.length) {
    const id = module[reader.at++];
    const bytes = reader.take(reader.number());
    found.push({ id, name: SECTIONS[id] ?? `section ${id}`, bytes });
  }
  return found;
}

/** The functions of a module that has kept its names, with the size of their code. */
export function functions(module) {
  const all = sections(module);
  const imported = importedFunctions(all.find(({ id }) => id === 2)?.bytes ?? new Uint8Array([0]));
  const names = namesOf(all.filter(({ id }) => id === 0).map(({ bytes }) => bytes));
  const code = new Reader(all.find(({ id }) => id === 10).bytes);
  return Array.from({ length: code.number() }, (_, index) => {
    const size = code.number();
    code.take(size);
    return { name: names.get(imported + index) ?? "nameless", size };
  });
}

/** Only functions are imported here, by a module that wasm-bindgen wrote. */
function importedFunctions(bytes) {
  return new Reader(bytes).number();
}

function namesOf(customs) {
  const names = new Map();
  for (const bytes of customs) {
    const section = new Reader(bytes);
    if (section.text() !== "name") continue;
    while (section.at < bytes.length) {
      const kind = bytes[section.at++];
      const part = new Reader(section.take(section.number()));
      if (kind !== 1) continue;
      for (let left = part.number(); left > 0; left--) names.set(part.number(), part.text());
    }
  }
  return names;
}

class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  /** An unsigned LEB128. */
  number() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.bytes[this.at++];
      value += (byte & 127) * 2 ** shift;
      if (byte < 128) return value;
    }
  }

  take(count) {
    this.at += count;
    return this.bytes.subarray(this.at - count, this.at);
  }

  text() {
    return Buffer.from(this.take(this.number())).toString();
  }
}
