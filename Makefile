# Everything there is to do here, from a clean checkout with Rust, Python 3.10 or later and make. `make` lists it.
# What a target needs and does not find (a virtual environment, pinned packages, the wasm target) it sets up itself.

PYTHON ?= python3
PORT ?= 8080

VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
OUT := $(or $(CARGO_TARGET_DIR),target)
PACKAGE := bindings-python
LOCK := $(PACKAGE)/requirements-dev.txt
NODE := bindings-node
WASM := bindings-wasm
TESTS := tests
DRILL := $(TESTS)/drill/python/drill.py
SCRIPTS := $(OUT)/identity/scripts.jsonl
HASHES := $(OUT)/identity/hashes
# Node and Chromium have their part where Node 20 or later is.
HAVE_NODE := $(shell node -e 'process.exit(+(parseInt(process.versions.node) < 20))' 2>/dev/null && echo yes)
# The gateway and the pages that are tested are on this machine: no proxy stands between.
COMMA := ,
export NO_PROXY := $(if $(NO_PROXY),$(NO_PROXY)$(COMMA))$(if $(no_proxy),$(no_proxy)$(COMMA))127.0.0.1,localhost
export no_proxy := $(NO_PROXY)
# LiteLLM would fetch its table of prices when it is imported.
export LITELLM_LOCAL_MODEL_COST_MAP := True
BENCHES := $(wildcard $(PACKAGE)/benches/*.py)
NATIVE := $(shell find core/src $(PACKAGE)/src -name '*.rs') Cargo.toml Cargo.lock core/Cargo.toml $(PACKAGE)/Cargo.toml

.PHONY: help check test demo compare bench python wasm node sizes gateway serve vectors lock wheel clean chromium no-node \
        check-rust check-python check-js test-rust test-python test-wheel test-js test-identity identity-js

help: ## list these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{ printf "  make %-9s %s\n", $$1, $$2 }'

check: check-rust check-python $(if $(HAVE_NODE),check-js,no-node) ## format, lints, types and the quick unit tests: seconds
	@echo "check: fine"

check-rust:
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps --locked -p reprieve
	cargo test --quiet --locked -p reprieve --lib

check-python: $(VENV)/.installed
	cd $(PACKAGE) && $(BIN)/ruff check --quiet . && $(BIN)/ruff format --quiet --check .
	$(BIN)/ruff check --quiet --config $(PACKAGE)/pyproject.toml .ci .ci/no-imports .ci/smoke-wheel tests
	$(BIN)/ruff format --quiet --check --config $(PACKAGE)/pyproject.toml --exclude derive.py .ci .ci/no-imports .ci/smoke-wheel tests
	cd $(PACKAGE) && $(BIN)/mypy && $(BIN)/mypy ../tests/drill/python ../tests/drill/compare.py
	cd $(PACKAGE) && $(BIN)/pyright --pythonpath $(BIN)/python

test: test-rust test-python test-wheel $(if $(HAVE_NODE),test-js,no-node) test-identity demo ## everything: core, vectors, gateway, bindings, READMEs, packages, identity, drill
	@echo "test: fine"

no-node:
	@echo "SKIPPED: the packages for Node and the browser, because Node 20 or later is not here"

# The compiler checks both engines against what the driver asks for: they have to be there.
check-js: node
	cd $(NODE) && npx tsc
	cd $(NODE) && npx biome check . ../bindings-wasm/build.mjs ../bindings-wasm/entry ../bindings-wasm/smoke/*.mjs ../tests/browser ../tests/clients ../tests/versions/*.mjs \
	    ../tests/drill/browser ../tests/drill/js ../tests/drill/node ../tests/drill/*.mjs ../tests/identity/*.mjs ../tests/js

test-rust:
	$(PYTHON) tests/vectors/derive.py --check
	cargo test --quiet --workspace --locked
	$(PYTHON) .ci/no-imports

test-python: python gateway
	cd $(PACKAGE) && $(BIN)/python -m mypy.stubtest reprieve._native
	cd $(PACKAGE) && $(BIN)/pytest
	cd $(PACKAGE) && $(BIN)/pytest --doctest-modules python
	$(BIN)/pytest -q $(TESTS)/drill/python

test-wheel: wheel
	$(BIN)/python .ci/smoke-wheel $(OUT)/wheels

# The sizes are printed here, and held to their limits by `make sizes`: without std's sources the module is larger.
test-js: node gateway $(WASM)/smoke/node_modules/.package-lock.json $(TESTS)/node_modules/.package-lock.json \
    $(TESTS)/versions/node_modules/.package-lock.json chromium
	node $(NODE)/scripts/test.mjs
	cd $(WASM)/smoke && node --test smoke.test.mjs
	node $(TESTS)/js/readme.mjs
	node --test $(TESTS)/streams/ $(TESTS)/clients/ $(TESTS)/versions/*.test.mjs $(TESTS)/drill/js/
	node $(NODE)/scripts/sizes.mjs | sed -n '1,7p'

# The same random scripts in every place: one hash each, and only one hash.
test-identity: python $(if $(HAVE_NODE),node gateway chromium $(TESTS)/node_modules/.package-lock.json)
	@mkdir -p $(OUT)/identity
	cargo run --quiet --release --locked -p reprieve --example identity -- 10000 $(SCRIPTS) > $(HASHES)
	$(BIN)/python $(TESTS)/identity/identity.py $(SCRIPTS) >> $(HASHES)
	@test -z "$(HAVE_NODE)" || $(MAKE) --no-print-directory identity-js
	@cat $(HASHES)
	@test "$$(awk '{ print $$NF }' $(HASHES) | sort -u | wc -l)" = 1
	$(if $(HAVE_NODE),node $(TESTS)/identity/travel.mjs --python $(BIN)/python)

identity-js:
	node $(TESTS)/identity/identity.mjs native $(SCRIPTS) >> $(HASHES)
	node $(TESTS)/identity/identity.mjs wasm $(SCRIPTS) >> $(HASHES)
	node $(TESTS)/browser/run.mjs --identity $(SCRIPTS) > $(OUT)/identity/chromium || { cat $(OUT)/identity/chromium; exit 1; }
	@cat $(OUT)/identity/chromium
	@grep "scripts," $(OUT)/identity/chromium >> $(HASHES)

# Three columns where Node is; else Python alone.
demo: python gateway $(if $(HAVE_NODE),node chromium $(TESTS)/node_modules/.package-lock.json) ## real clients against a server that misbehaves: a table, a timeline, the receipts
	$(BIN)/python $(DRILL)
	$(BIN)/python $(TESTS)/drill/python/hedge.py
	$(if $(HAVE_NODE),node $(TESTS)/drill/node/drill.mjs)
	$(if $(HAVE_NODE),node $(TESTS)/drill/browser/drill.mjs)
	$(if $(HAVE_NODE),node $(TESTS)/drill/columns.mjs)

# Other languages' clients have a program of their own, whose rows are gathered.
compare: python gateway $(if $(HAVE_NODE),node $(TESTS)/node_modules/.package-lock.json) ## what a failure does to each client, without and with reprieve: a table
	$(BIN)/python $(TESTS)/drill/compare.py $(if $(HAVE_NODE),$(wildcard $(TESTS)/drill/compare.mjs))

bench: python gateway $(if $(HAVE_NODE),node $(TESTS)/node_modules/.package-lock.json $(NODE)/benches/node_modules/.package-lock.json) ## what a retry costs, beside the peers: tables, and target/bench/*.json
	cargo bench --locked -p reprieve
	$(PYTHON) core/benches/collect.py $(OUT)
	$(foreach bench,$(BENCHES),$(BIN)/python $(bench) &&) true
	$(if $(HAVE_NODE),$(foreach bench,peers streams clients,node $(NODE)/benches/$(bench).mjs &&) true)

python: $(VENV)/.built ## build the Python package into .venv

wasm: $(NODE)/node_modules/.package-lock.json ## build the package reprieve-wasm in place
	@rustup target list --installed | grep -q wasm32-unknown-unknown || rustup target add wasm32-unknown-unknown
	@rustup component list --installed | grep -q rust-src || rustup component add rust-src || true
	node $(WASM)/build.mjs

node: wasm ## build the package reprieve in place, with the addon of this platform
	node $(NODE)/build.mjs

chromium:
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } || \
	    { echo "Chromium is needed: apt-get install chromium"; exit 1; }

sizes: wasm ## what a browser loads, and what the bytes are
	node $(NODE)/scripts/sizes.mjs

gateway: ## build the fault gateway
	cargo build --quiet --release --locked -p gateway

serve: gateway ## run the fault gateway on PORT (8080)
	$(OUT)/release/gateway --port $(PORT)

vectors: ## compute the derived vectors anew, and run all of them through the core
	$(PYTHON) tests/vectors/derive.py
	cargo test --quiet --locked -p reprieve --test 'vectors_*'

wheel: $(VENV)/.installed ## build the wheel into target/wheels
	rm -rf $(OUT)/wheels
	$(BIN)/maturin build --quiet --release --locked -m $(PACKAGE)/Cargo.toml --interpreter $(BIN)/python --out $(OUT)/wheels

lock: $(VENV)/.installed ## pin the newest versions of the development packages
	$(BIN)/pip install --quiet uv
	cd $(PACKAGE) && $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.10 --no-emit-index-url \
	    --no-annotate --custom-compile-command "make lock" requirements-dev.in --output-file requirements-dev.txt

clean: ## remove what was built and set up
	rm -rf $(VENV) $(OUT) $(PACKAGE)/python/reprieve/_native*.so
	find $(PACKAGE) tests .ci -name __pycache__ -prune -exec rm -rf {} +
	rm -rf $(addprefix $(NODE)/,build dist gen node_modules) $(addprefix $(WASM)/,dist gen smoke/build smoke/node_modules) $(TESTS)/node_modules $(TESTS)/versions/node_modules
	rm -rf $(PACKAGE)/.mypy_cache $(PACKAGE)/.pytest_cache $(PACKAGE)/.ruff_cache

# --- what is set up once, and again when what it is made from changes ---

# Written by npm once everything is there.
%/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --silent
	@touch $@

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	    { echo "Python 3.10 or later is needed; name one with: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "this Python cannot make virtual environments; Debian has it in python3-venv"; exit 1; }
	@touch $@

$(VENV)/.installed: $(VENV)/.made $(LOCK)
	$(BIN)/pip install --quiet --disable-pip-version-check -r $(LOCK)
	@touch $@

$(VENV)/.built: $(VENV)/.installed $(NATIVE) $(PACKAGE)/pyproject.toml
	VIRTUAL_ENV=$(CURDIR)/$(VENV) $(BIN)/maturin develop --quiet --release --locked -m $(PACKAGE)/Cargo.toml
	@touch $@
