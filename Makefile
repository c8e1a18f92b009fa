PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-all test-gpu fuzz coverage mutants bench bench-gpu lint notebooks docs docs-links clean

demo: .venv/demo.stamp
	$(BIN)/letir demo

# Compiled Python goes to .venv, also where the environment forbids it: each process of the tests
# that has to compile all of letir takes eight seconds more.
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/.venv/pycache

test: .venv/test.stamp
	$(BIN)/pytest -n 2

# The same laws with fresh seeds: make fuzz MINUTES=5; make fuzz SEED=7 repeats one round.
MINUTES ?= 30
fuzz: .venv/test.stamp
	$(BIN)/python tests/fuzz.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

# Statements and branches, with the tests that run each line, for make mutants. The models of all
# operations are made by slow tests.
coverage: .venv/test.stamp
	$(BIN)/pytest -n 2 --cov=letir --cov-branch --cov-context=test --cov-report=
	$(BIN)/pytest -n 2 -m slow tests/onnx/exporting/test_node_emission.py --cov=letir --cov-branch --cov-append --cov-report=
	$(BIN)/python tests/coverage_floor.py

# Faults planted one by one in copies of the repository: make mutants COUNT=20 SEED=7.
COUNT ?= 200
mutants: .venv/test.stamp
	$(BIN)/python tests/mutants.py --count $(COUNT) $(if $(SEED),--seed $(SEED))

# The empty -m lifts the default "not slow"; the peers are those of the benchmarks, and the makers
# those of the ONNX models in tests/data.
test-all: .venv/test.stamp .venv/bench.stamp .venv/makers.stamp .venv/docs.stamp
	$(BIN)/pytest -n 2 -m ""

# Every law, sample and program on a CUDA device, with CuPy for CUDA 12 (make test-gpu CUDA=13), and
# the notebooks.
CUDA ?= 12
test-gpu: .venv/test.stamp .venv/cuda$(CUDA).stamp
	$(BIN)/pytest -rs tests/eval/test_device.py tests/eager/test_variables_on_a_device.py \
	  tests/executor/kernels/test_device_kernels.py tests/eval/test_device_programs.py
	$(BIN)/python docs/make_notebooks.py

# letir beside plain CuPy, torch.compile and JAX on a CUDA device.
bench-gpu: .venv/bench.stamp .venv/cuda$(CUDA).stamp
	$(BIN)/python -m benchmarks.device_programs

bench: .venv/bench.stamp
	$(BIN)/python -m benchmarks

# mypy checks with two processes; versions that cannot ignore the variable.
lint: export MYPY_NUM_WORKERS ?= 2
lint: .venv/lint.stamp
	$(BIN)/ruff check letir tests benchmarks
	$(BIN)/ruff format --check letir tests benchmarks
	$(BIN)/mypy
	$(BIN)/basedpyright

notebooks: .venv/test.stamp
	$(BIN)/python docs/make_notebooks.py

# The site, in build/site. Warnings are errors, and links inside the site are followed. All pages
# are written each time (-a), because each has the navigation.
docs: .venv/docs.stamp
	$(BIN)/sphinx-build -q -a -W --keep-going -n -d build/site-cache -c docs . build/site
	$(BIN)/python docs/check_site.py build/site

# Addresses of other sites, which takes the network.
docs-links: .venv/docs.stamp
	$(BIN)/sphinx-build -q -b linkcheck -d build/site-cache -c docs . build/links

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage*
	find . -name __pycache__ -prune -exec rm -rf {} +

# pip is what venv writes last, so an interrupted venv is made again.
$(BIN)/pip:
	$(PYTHON) -m venv .venv

# Python compiles what is imported; pip would compile 8,000 files, for half a minute.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --editable

# One stamp for each extra: NAME.stamp installs letir[NAME].
.venv/%.stamp: setup.cfg pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[$*]'
	touch $@

# What `make lint` needs, in one call of pip; `make test` finds its part done.
.venv/lint.stamp: setup.cfg pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[test,lint]'
	touch .venv/test.stamp $@
