//! Writes the JavaScript half of a built wasm module, and the module without what only this tool reads.
//!
//! Usage: `reprieve-wasm-tool <module.wasm> <folder>`

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let [module, folder] = std::env::args().skip(1).collect::<Vec<_>>().try_into().map_err(|_| "two arguments")?;
    let mut tool = wasm_bindgen_cli_support::Bindgen::new();
    // For a bundler: plain functions over a module that somebody else instantiates, as each entry does in its own way.
    tool.input_path(module).bundler(true)?.typescript(true).omit_default_module_path(true).out_name("engine");
    Ok(tool.generate(folder)?)
}
