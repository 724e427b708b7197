# make run    build, install and run hinge on the embedded digits
# make test   everything that is checked: native code under sanitizers, Python with coverage
# make lint   style, types, layers
# make bench  hinge against its rivals on this machine

PYTHON ?= python3
export PYTHON
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

BUILD_FILES  := pyproject.toml CMakeLists.txt README.md
NATIVE_FILES := $(shell find native -type f)
SOURCE_FILES := $(shell find src -type f -not -name '*.pyc')

.PHONY: run test native-test python-test lint bench format stubs clean system-packages

run: $(VENV)/.installed
	@$(BIN)/hinge run

test: native-test python-test

# --- set-up ----------------------------------------------------------------------------------------------------------

$(VENV)/.created:
	@tools/system-packages build
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: $(VENV)/.created $(BUILD_FILES) $(NATIVE_FILES) $(SOURCE_FILES)
	$(PIP) install .
	@touch $@

$(VENV)/.test-packages: $(VENV)/.created pyproject.toml
	@tools/system-packages test
	$(PIP) install $$($(BIN)/python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['optional-dependencies']['test'])")
	@touch $@

# --- checks ----------------------------------------------------------------------------------------------------------

native-test: $(VENV)/.test-packages
	@$(BIN)/cmake -G Ninja -S . -B build/native-tests -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja \
	  -DHINGE_NATIVE_TESTS=ON -DHINGE_SANITIZE=ON > /dev/null
	@$(BIN)/cmake --build build/native-tests
	@$(BIN)/ctest --test-dir build/native-tests --output-on-failure

python-test: $(VENV)/.installed $(VENV)/.test-packages
	@$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

lint: $(VENV)/.installed $(VENV)/.test-packages
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@tools/stubs --check $(BIN)/python

bench: $(VENV)/.installed $(VENV)/.test-packages
	@$(BIN)/python -m benchmarks

# --- care ------------------------------------------------------------------------------------------------------------

format: $(VENV)/.test-packages
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

stubs: $(VENV)/.installed
	@tools/stubs --write $(BIN)/python

clean:
	rm -rf $(VENV) build hinge-run
