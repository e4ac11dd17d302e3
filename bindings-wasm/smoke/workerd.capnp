using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(name = "main", worker = .worker)],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);

const worker :Workerd.Worker = (
  modules = [
    (name = "worker.js", esModule = embed "build/workerd/worker.js"),
    (name = "reprieve.wasm", wasm = embed "build/workerd/reprieve.wasm"),
  ],
  compatibilityDate = "2025-01-01",
);
